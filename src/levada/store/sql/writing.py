"""Writing to an SQL store: adding URLs, leasing, committing visits, sites and change hints.

The visits of a batch become rows first, and each statement then runs over all of its rows. One call per row would
take longer and release Python's lock to waiting threads more often. How sites are locked, pages leased and URLs
inserted is each database's own (`_lock_sites`, `_lease`, `_intake`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic

import msgspec

from levada.core.reasons import Reason
from levada.core.records import (
    FOREVER,
    ChangeHint,
    FoundUrl,
    Lease,
    NewVersion,
    OutboxLink,
    PageRecord,
    PageState,
    Refusal,
    Signals,
    SiteRecord,
    VisitResult,
)
from levada.core.structured import amended_data
from levada.store.base import StoreLimits
from levada.store.bodies.references import MARK, unpacked_reference
from levada.store.retention import expendable
from levada.store.rows import (
    CHANGE_KIND_CODE,
    Row,
    amended_row,
    packed_link,
    packed_robots,
    page_record,
    version_row,
    visit_row,
)
from levada.store.rules import (
    Validators,
    amends,
    change_kind,
    changed_plans,
    earliest_by_site,
    example_of,
    holdable,
    is_new_hint,
    is_removed,
    refused_for,
    text_key,
    unconfirmed_signals,
    validators_after,
    version_after,
    warn_of_lifted,
)
from levada.store.sql.base import HeldSites, KnownUrls, WriteT
from levada.store.sql.reading import SqlReader
from levada.store.sql.statements import Statements
from levada.store.sql.stored import Stored
from levada.store.sql.tombstones import Tombstones

ELSEWHERE_ID = 0
"""The site under which refusals of unknown sites are counted: pages can name any number of them."""

EVER = float("-inf")
_LOOKED_UP_AT_ONCE = 1_000


class Intake(Generic[WriteT]):
    """What one transaction found, refused and changed; `finish` writes it."""

    _sites: HeldSites[WriteT]

    def __init__(self, write: WriteT, sql: Statements, limits: StoreLimits, known: KnownUrls) -> None:
        self.held: list[str] = []  # certainly stored once this transaction is committed
        self.tombstones = Tombstones(write, sql)
        self._write = write
        self._sql = sql
        self._limits = limits
        self._known = known
        self._pages: list[Row] = []  # new ones
        self._forwarded: list[Row] = []
        self._refused: dict[tuple[int, Reason], list[int | str]] = {}

    def prepare(self, found: Sequence[FoundUrl], refused: Iterable[Refusal]) -> None:
        """Look up and lock everything that `found` and `refused` name, at once."""

    def prepare_visits(self, visits: Sequence[VisitResult], ask: Callable[[], None]) -> None:
        """Do the same for all that these visits name, before their leases end. `ask` is called with the locks, and
        asks for more."""
        ask()

    def hold(self, found: FoundUrl, found_on: int | None, now: float) -> bool:
        """Add this URL; return whether it was new."""
        raise NotImplementedError

    def may_hold(self, found: FoundUrl) -> bool:
        """Whether this URL can be stored and was not forgotten; else its refusal is counted."""
        if not holdable(found):
            self.refuse(refused_for(found, Reason.BAD_URL))
            return False
        return self._may_know(found)

    def _may_know(self, found: FoundUrl) -> bool:
        """Whether this URL was not forgotten; else its refusal is counted."""
        if self.tombstones.cover(found.url, found.site):
            self.refuse(refused_for(found, Reason.FORGOTTEN))
            return False
        return True

    def refuse(self, refusal: Refusal) -> None:
        """Count this refusal under its site."""
        raise NotImplementedError

    def site_id(self, name: str) -> int:
        raise NotImplementedError

    def due_again(self, site: str, at: float) -> None:
        """Note that a page of this site becomes due at `at`."""
        raise NotImplementedError

    def _write_pages(self) -> None:
        """Write what was held back of the new pages."""
        raise NotImplementedError

    def finish(self) -> None:
        """Write refusals last: on a server, other transactions wait for those of unknown sites."""
        if self._pages:
            self._write_pages()
            self._write.count("unvisited", len(self._pages))
            self._write.count(f"state.{PageState.NEW}", len(self._pages))
        if self._forwarded:
            self._write.executemany(self._sql.forward, self._forwarded)
        self._sites.save()
        refused = sorted(self._refused.items())
        if refused:
            self._write.executemany(self._sql.count_refusal, [(*key, *count) for key, count in refused])
        for (_, reason), (n, _) in refused:
            self._write.count(f"refused.{reason}", int(n))

    def take_links(self, result: VisitResult) -> None:
        """Take in what a visit found, and when its page is due again."""
        page, at = result.lease.page, result.visit.at
        if result.next_visit is not None:
            self.due_again(page.site, result.next_visit)
        for found in result.found:
            self.hold(found, page.id, at)
        for found in result.elsewhere:
            if self._may_know(found):
                self._forwarded.append(packed_link(found, page.id, at))
        for refusal in result.refused:
            self.refuse(refusal)

    def _count_refusal(self, site_id: int, refusal: Refusal) -> None:
        key = (site_id, refusal.reason)
        if key in self._refused:
            self._refused[key][0] += refusal.count  # type: ignore[operator]
        else:
            self._refused[key] = [refusal.count, "" if self.tombstones.cover(refusal.url) else example_of(refusal)]


@dataclass
class Contents:
    """What the visits of a batch change in the stored documents."""

    validators: list[Row] = field(default_factory=list)
    versions: list[Row] = field(default_factory=list)
    amended: list[Row] = field(default_factory=list)
    outdated: list[tuple[int, int]] = field(default_factory=list)  # page, newest version to drop
    dated: list[tuple[int, int, float]] = field(default_factory=list)  # page, new version, its time: see `Retention`
    changes: list[tuple[Row, Row | None]] = field(default_factory=list)  # document, log entry; without their seq


class SqlFrontier(SqlReader[WriteT]):
    """The writes of a store, without those that only a shard needs."""

    _settled: Sequence[bool] = ()  # what the last commit was about to answer

    def _intake(self, write: WriteT) -> Intake[WriteT]:
        raise NotImplementedError

    def _lock_sites(self, write: WriteT) -> HeldSites[WriteT]:
        raise NotImplementedError

    def _lease(self, write: WriteT, now: float, limit: int, seconds: float, due_by: float) -> list[Lease]:
        raise NotImplementedError

    def _grant(self, write: WriteT, pages: Sequence[tuple[int, int]], expires_at: float) -> list[Lease]:
        """Lease these pages (their numbers, and those of their sites)."""
        raise NotImplementedError

    def _lapse(self, write: WriteT, now: float, *, wait: bool) -> None:
        """End expired leases, except those of moving pages. Those of sites that another process holds end with the
        next lease, unless we `wait`."""
        raise NotImplementedError

    def _earliest_due(self, write: WriteT, sites: Sequence[int], after: float = EVER) -> dict[int, float]:
        """When each site's next page without a lease is due, ignoring pages due again until `after`."""
        raise NotImplementedError

    def _drop_these(self, write: WriteT, versions: Sequence[tuple[int, int]]) -> int:
        """Delete these versions (page, version); return how many there were."""
        raise NotImplementedError

    def _drop_outdated(self, write: WriteT, contents: Contents, stored: Stored, at: float) -> None:
        """Delete the versions that need not be kept any more, and count them."""
        if contents.outdated:
            self._note_unused(write, self.sql.unused_up_to, contents.outdated, at)
            write.count("versions", -self._drop_versions(write, contents.outdated))
        if contents.dated:
            going = self._outdated_by_time(contents.dated, stored)
            self._note_unused(write, self.sql.unused_of_version, going, at)
            write.count("versions", -self._drop_these(write, going))

    def _outdated_by_time(self, pages: Sequence[tuple[int, int, float]], stored: Stored) -> list[tuple[int, int]]:
        """The versions that may go now that these pages (id, version, time) get a new one."""
        rules = self._limits.retention
        kept: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
        for id, version, at in stored.versions():
            kept[id].append((version, at))
        return [
            (id, version) for id, number, at in pages for version in expendable([*kept[id], (number, at)], at, rules)
        ]

    def _drop_versions(self, write: WriteT, outdated: Sequence[tuple[int, int]]) -> int:
        """Delete each page's versions up to the one named; return how many there were."""
        raise NotImplementedError

    def _note_unused(self, write: WriteT, statement: str, versions: Sequence[Sequence[int]], at: float) -> None:
        """Note, before these versions (page, version) go or change, that nothing will name their objects any more."""
        if self._bodies is not None and versions:
            write.executemany(statement, [(float(at), MARK, *version) for version in versions])

    def add(
        self, found: Sequence[FoundUrl], refused: Sequence[Refusal], now: float, *, found_on: int | None = None
    ) -> int:
        if not found and not refused:
            return 0
        return self._take("add", [(each, found_on, now) for each in found], refused, lift=found_on is None)

    def receive(self, links: Sequence[OutboxLink]) -> int:
        if not links:
            return 0
        return self._take("receive", [(link.found, link.found_on, link.at) for link in links], ())

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        if limit <= 0:
            return []
        with self._database.write("lease") as write:
            return self._lease(write, now, limit, seconds, now if due is None else due)

    def lease_url(self, url: str, now: float, seconds: float, *, out_of_turn: bool = False) -> Lease | None:
        page = self.page(url)
        if page is None:
            return None
        with self._database.write("lease-url") as write:
            sites = self._lock_sites(write)
            sites.lock_named([page.site])
            site = sites.by_name.get(page.site)
            if site is None or site.rest_until > now or (site.turn_at > now and not out_of_turn):
                return None
            if write.rows(self.sql.held, (page.id, now)):
                return None
            write.reach("leases")
            (lease,) = self._grant(write, [(page.id, site.id)], now + seconds)
            write.reach("turns")
            site.pass_turn(max(site.turn_at, now) + self._limits.delay_of(site.site, site.delay), 1)
            site.set_turn(self._earliest_due(write, [site.id]).get(site.id))
            sites.save()
        return lease

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        if not visits:
            return []
        if self._bodies is not None:
            visits = self._bodies.put_visits(visits, version_after)
        with self._database.write("settle") as write:
            intake = self._intake(write)
            write.reach("fence")
            stored = Stored(write, self.sql, visits, by_time=self._limits.retains_by_time)
            intake.prepare_visits(visits, stored.ask)
            copies = stored.copies()
            held = [result.lease for place, result in enumerate(visits) if place not in copies]
            ended = iter(self._end_leases(write, held, stored.tokens()))
            current = [place not in copies and next(ended) for place in range(len(visits))]
            self._settled = current
            refused = [result for result, is_kept in zip(visits, current, strict=True) if not is_kept]
            orphans = self._note_orphans(write, refused)
            kept = [
                _without_forgotten(result, intake.tombstones)
                for result, is_current in zip(visits, current, strict=True)
                if is_current
            ]
            contents = self._contents(write, kept, stored)
            at = visits[-1].visit.at
            self._drop_outdated(write, contents, stored, at)  # old versions first: the new ones take their room
            self._note_unused(write, self.sql.unused_of_version, [row[-2:] for row in contents.amended], at)
            write.reach("page")
            self._update_pages(write, intake, kept)
            write.reach("version")
            write.executemany(self.sql.keep_validators, contents.validators)
            write.executemany(self.sql.insert_version, contents.versions)
            write.executemany(self.sql.amend_version, contents.amended)
            write.reach("links")
            for result in kept:
                intake.take_links(result)
            write.reach("near-runs")
            near_runs = {result.lease.page.site: result.near_runs for result in kept if result.near_runs}
            rows = [(intake.site_id(site), runs) for site, runs in near_runs.items()]
            write.executemany(self.sql.keep_near_runs, rows)
            write.reach("sites")
            intake.finish()
            self._log_changes(write, contents)
        # Only now: a URL of a transaction that was rolled back must not count as stored.
        self._known.update(intake.held)
        self._after_commit(at, orphans)
        return current

    def _note_orphans(self, write: WriteT, refused: Sequence[VisitResult]) -> int:
        """Note what was written outside of the database for pages that were forgotten meanwhile; returns how much.

        For others nothing is noted: the commit may be one that is repeated, and the first one may name it.
        """
        if self._bodies is None or not refused:
            return 0
        marks = Tombstones(write, self.sql)
        forgotten = [result for result in refused if marks.cover(result.lease.page.url, result.lease.page.site)]
        held = [result.version.content_zstd for result in forgotten if result.version is not None]
        orphans = [(each, EVER) for each in held if unpacked_reference(each)]
        write.executemany(self.sql.unused, orphans)
        return len(orphans)

    def _after_commit(self, at: float, orphans: int) -> None:
        """What may be done after a commit, and is done later if it fails. `orphans` should be deleted now."""

    def release(self, leases: Sequence[Lease]) -> None:
        """Undo these leases, and the turns that their sites had for them."""
        if not leases:
            return
        with self._database.write("release") as write:
            sites = self._lock_sites(write)
            write.reach("leases")
            ids = self.sql.dialect.id_list(lease.page.id for lease in leases)
            locked = sites.ask_named({lease.page.site for lease in leases})
            asked = write.ask(self.sql.tokens, (ids,))
            # Not when it was due when leased: if the lease had expired, the page may have been brought forward.
            asked_due = write.ask(self.sql.due_of, (ids,))
            locked()
            ended = self._end_leases(write, leases, dict(asked()))
            held = [lease.page for lease, has_ended in zip(leases, ended, strict=True) if has_ended]
            write.reach("sites")
            due: dict[int, float | None] = dict(asked_due())
            for page in held:
                site = sites.by_name[page.site]
                site.turn_at -= self._limits.delay_of(site.site, site.delay)
                site.changed = True
                if (at := due.get(page.id)) is not None:
                    site.pull(at)
            sites.save()

    def forget_leases(self) -> None:
        with self._database.write("forget") as write:
            write.reach("lapse")
            self._lapse(write, float("inf"), wait=True)

    def limit_waits(self, now: float, latest: float) -> int:
        rows = self._rows(self.sql.waiting_beyond, {"latest": latest, "forever": FOREVER})
        if not rows:
            return 0
        now = float(now)
        with self._database.write("limit-waits") as write:
            write.reach("pages")
            sites = self._lock_sites(write)
            locked = sites.lock_numbered([id for (id,) in rows])
            ids = self.sql.dialect.id_list(locked)
            write.execute(self.sql.due_now, (now, ids, latest))
            write.execute(self.sql.found_now, (now, ids, latest))
            write.reach("sites")
            earliest = self._earliest_due(write, locked)
            for site in sites.by_id.values():
                if site.turn_at > latest:
                    site.turn_at, site.changed = now, True
                if latest < site.rest_until < FOREVER:
                    site.rest_until = now
                    write.execute(self.sql.rest_until, (now, site.id))
                site.set_turn(earliest.get(site.id))
            sites.save()
        return len(rows)

    def save(self, record: SiteRecord) -> None:
        with self._database.write("save-site") as write:
            write.reach("site")
            if Tombstones(write, self.sql).cover(record.site, record.site):
                return
            sites = self._lock_sites(write)
            sites.take_named([record.site])
            (site,) = sites.by_id.values()
            if record.admitted:
                site.admit()
            site.rest_until, site.delay = float(record.rest_until), record.delay
            write.execute(self.sql.save_site, (record.failures, site.rest_until, site.delay, site.id))
            write.execute(self.sql.save_robots, (site.id, packed_robots(record)))
            # A backoff may have begun or ended: recompute when the site's next page may be leased.
            site.set_turn(self._earliest_due(write, [site.id]).get(site.id))
            sites.save()

    def outdated(self, hints: Sequence[ChangeHint]) -> list[PageRecord]:
        found: dict[int, PageRecord] = {}
        for start in range(0, len(hints), _LOOKED_UP_AT_ONCE):
            for page in self._outdated(hints[start : start + _LOOKED_UP_AT_ONCE]):
                found.setdefault(page.id, page)
        return list(found.values())

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Signals, float | None]]) -> None:
        if not pages:
            return
        with self._database.write("bring-forward") as write:
            write.reach("pages")
            sites = self._lock_sites(write)
            sites.lock_named({page.site for page, _, _ in pages})
            ids = self.sql.dialect.id_list(page.id for page, _, _ in pages)
            changed = changed_plans(write.rows(self.sql.free_plans, (ids,)), pages)
            write.executemany(self.sql.expect, [(each.told, each.next_visit, each.id) for each in changed])
            write.reach("sites")
            for at, site in earliest_by_site(changed):
                sites.by_id[site].pull(at)
            sites.save()

    def _take(
        self,
        operation: str,
        found: Sequence[tuple[FoundUrl, int | None, float]],
        refused: Sequence[Refusal],
        *,
        lift: bool = False,
    ) -> int:
        with self._database.write(operation) as write:
            intake = self._intake(write)
            lifted = intake.tombstones.lift([each for each, _, _ in found]) if lift else []
            intake.prepare([each for each, _, _ in found], refused)
            write.reach("links")
            new = sum(intake.hold(*each) for each in found)
            for refusal in refused:
                intake.refuse(refusal)
            write.reach("sites")
            intake.finish()
        self._known.update(intake.held)
        warn_of_lifted(lifted)
        return new

    def _end_leases(self, write: WriteT, leases: Sequence[Lease], newest: dict[int, int]) -> list[bool]:
        """Write fence and done-mark in one: False for a lease that is not the newest of its page. `newest` are the
        tokens of these pages."""
        ended, held = [], []
        for lease in leases:
            is_newest = newest.get(lease.page.id) == lease.token
            if is_newest:
                del newest[lease.page.id]  # the same lease later in this batch has ended
                held.append(lease.page.id)
            ended.append(is_newest)
        if held:
            write.execute(self.sql.end_leases, (self.sql.dialect.id_list(held),))
        return ended

    def _update_pages(self, write: WriteT, intake: Intake[WriteT], kept: Sequence[VisitResult]) -> None:
        first, again, no_longer_new = [], [], []
        for result in kept:
            page = result.lease.page
            if page.visits:
                again.append((unconfirmed_signals(result.visit), *visit_row(result)))
                continue
            *facts, met_at, interval, next_visit, failures, memory, id = visit_row(result)
            site = intake.site_id(page.site)
            first.append((*facts, met_at or 0.0, interval, next_visit, failures, memory or b"", id, site))
            no_longer_new.append(id)
        write.executemany(self.sql.visit_again, again)
        if first:
            write.executemany(self.sql.first_visit, first)
            write.execute(self.sql.no_longer_new, (self.sql.dialect.id_list(no_longer_new),))
            write.count("unvisited", -len(first))
        for (before, after), n in Counter((result.lease.page.state, result.state) for result in kept).items():
            if before is not after:
                write.count(f"state.{before}", -n)
                write.count(f"state.{after}", n)

    def _contents(self, write: WriteT, kept: Sequence[VisitResult], stored: Stored) -> Contents:
        gone = stored.gone()
        contents = Contents()
        for result in kept:
            was_gone = result.lease.page.id in gone
            if result.version is not None:
                self._keep_version(write, contents, result, result.version, was_gone, stored)
            else:
                _keep_or_drop(write, contents, result, was_gone)
        if contents.versions:
            write.count("versions", len(contents.versions))
        return contents

    def _keep_version(
        self,
        write: WriteT,
        contents: Contents,
        result: VisitResult,
        version: NewVersion,
        was_gone: bool,
        stored: Stored,
    ) -> None:
        page, validators = result.lease.page, validators_after(result)
        assert validators is not None  # a new version brings its own
        number, gone = version_after(result), is_removed(result.state)
        write.count("stored", int(not gone) - int(page.version > 0 and not was_gone))
        if amends(result):
            data, stored_at = stored.data().get(page.id, (None, 0.0))
            data = amended_data(data, stored_at, version.data, result.visit.at)
            contents.amended.append(amended_row(page.id, number, msgspec.structs.replace(version, data=data)))
        else:
            contents.versions.append(version_row(page.id, number, result.visit.at, version))
            if self._limits.retains_by_time:
                contents.dated.append((page.id, number, result.visit.at))
            elif number > self._limits.keep_versions:
                contents.outdated.append((page.id, number - self._limits.keep_versions))
        key = text_key(page.site, validators.text_digest, gone=gone)
        document = (page.id, *msgspec.structs.astuple(validators), number, gone, version.sketch, key)
        contents.changes.append((document, _log_entry(result, was_gone)))

    def _log_changes(self, write: WriteT, contents: Contents) -> None:
        """Number the changes and write them to the change log.

        Sequence numbers are taken last and stay locked until the commit, so a reader who sees one sees all before
        it. A sequence without that lock could let a reader pass over a change whose transaction ends late.
        """
        if not contents.changes:
            return
        steps = write.number_steps(len(contents.changes))
        numbered = list(zip(steps, contents.changes, strict=True))
        write.executemany(self.sql.keep_change, [(*document, seq) for seq, (document, _) in numbered])
        write.executemany(self.sql.log_change, [(seq, *entry) for seq, (_, entry) in numbered if entry])
        write.execute(self.sql.tidy_log, {"count": len(numbered), "kept": self._limits.keep_events})

    def _outdated(self, hints: Sequence[ChangeHint]) -> list[PageRecord]:
        rows = self._rows(self.sql.met, self.sql.dialect.url_list([hint.url for hint in hints]))
        met = {url: (id, met_at, Signals(told)) for url, id, met_at, told in rows}
        known = [(hint, *met[hint.url]) for hint in hints if hint.url in met]
        ids = [id for hint, id, met_at, told in known if is_new_hint(hint, met_at, told)]
        return [page_record(row) for row in self._rows(self.sql.pages, (self.sql.dialect.id_list(ids),))] if ids else []


def _without_forgotten(result: VisitResult, tombstones: Tombstones) -> VisitResult:
    """The result without the address that it leads to, if that is forgotten."""
    if result.leads_to is None or not tombstones.cover(result.leads_to):
        return result
    return msgspec.structs.replace(result, leads_to=None)


def _keep_or_drop(write: WriteT, contents: Contents, result: VisitResult, was_gone: bool) -> None:
    """Remove a page that is gone from search, and return one that is back, with its version unchanged."""
    page, validators = result.lease.page, validators_after(result)
    removed = is_removed(result.state)
    if page.version == 0 or not (removed or result.state is PageState.LIVE) or removed == was_gone:
        if validators is not None:
            contents.validators.append((page.id, *msgspec.structs.astuple(validators)))
        return
    write.count("stored", -1 if removed else 1)
    kept = validators or Validators(page.etag, page.last_modified, page.body_digest, page.text_digest)
    key = text_key(page.site, kept.text_digest, gone=removed)
    document = (page.id, *msgspec.structs.astuple(kept), page.version, removed, page.sketch, key)
    contents.changes.append((document, _log_entry(result, was_gone)))


def _log_entry(result: VisitResult, was_gone: bool) -> Row | None:
    """The columns when, what, page, version, similarity; None if the document did not change."""
    what = change_kind(result, was_gone)
    if what is None:
        return None
    similarity = result.version.similarity if result.version else 1.0
    return (result.visit.at, CHANGE_KIND_CODE[what], result.lease.page.id, version_after(result), similarity)
