"""The store in memory: the reference that every other store must match, lost when the process ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Self

from msgspec.structs import asdict, replace

from levada.core.hashing import drawn
from levada.core.reasons import Reason
from levada.core.records import (
    FOREVER,
    Change,
    ChangeEvent,
    ChangeHint,
    CollectionStats,
    Document,
    FoundUrl,
    Lease,
    NewVersion,
    PageRecord,
    PageState,
    PageText,
    PlanSelection,
    Refusal,
    Signals,
    SiteRecord,
    VersionInfo,
    VisitResult,
)
from levada.core.structured import amended_data
from levada.pages.compression import picture_of
from levada.pages.urls import site_of
from levada.store.base import Capability, ShardAway, StoreLimits, changed_limits
from levada.store.fair_leasing import SiteTurn, first_portions
from levada.store.memory_forgetting import MemoryForgetting
from levada.store.ownership import SlicesInMemory
from levada.store.retention import expendable
from levada.store.rules import (
    DUE_COUNTED,
    TIDIED_EVERY,
    amends,
    brought_forward,
    change_kind,
    checked_one_in,
    example_of,
    holdable,
    is_full,
    is_new_hint,
    is_removed,
    met_content,
    page_number,
    plain_text,
    refused_for,
    remember,
    text_key,
    unconfirmed_signals,
    unpacked,
    unpacked_text,
    validators_after,
    version_after,
    warn_of_lifted,
)


@dataclass
class _Site:
    id: int
    record: SiteRecord
    turn_at: float = 0.0
    due_at: float | None = None
    taken: int = 0
    pages: list[_Page] = field(default_factory=list)
    used: int = 0  # numbers of pages that were erased: they are not used again

    def due_again(self, at: float) -> None:
        """A page of this site may be leased from `at` on, when the site has its turn."""
        turn = max(at, self.turn_at, self.record.rest_until)
        self.due_at = turn if self.due_at is None else min(self.due_at, turn)


@dataclass
class _Page:
    record: PageRecord
    site: _Site
    priority: int
    met_at: float = 0.0
    gone: bool = False
    seq: int = 0
    versions: dict[int, tuple[float, NewVersion]] = field(default_factory=dict)

    @property
    def is_stored(self) -> bool:
        """Whether it has a document that was not removed."""
        return self.record.version > 0 and not self.gone

    def is_due(self, now: float) -> bool:
        return self.record.next_visit is not None and self.record.next_visit <= now


@dataclass
class _Lease:
    token: int
    expires_at: float
    live: bool = True  # False: expired; its holder may still commit until another process leases the page


class MemoryStore(SlicesInMemory, MemoryForgetting):
    """Everything of one crawl in dictionaries; nothing outlives the process."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.FORGET, Capability.LIMITS, Capability.SLICES})
    away: ClassVar[Mapping[int, ShardAway]] = {}
    format: ClassVar[int] = 0

    def __init__(self, *, limits: StoreLimits | None = None) -> None:
        super().__init__()
        self._limits = limits or StoreLimits()
        self._pages: dict[str, _Page] = {}
        self._by_id: dict[int, _Page] = {}
        self._sites: dict[str, _Site] = {}
        self._leases: dict[int, _Lease] = {}
        self._refused: dict[tuple[str, Reason], tuple[int, str]] = {}
        self._change_log: list[ChangeEvent] = []
        self._near_runs: dict[str, bytes] = {}
        self._token = self._seq = 0
        self._next_site = 1

    @property
    def shards(self) -> tuple[Self]:
        return (self,)

    logs = shards

    def set_limits(self, limits: StoreLimits) -> None:
        self._limits = changed_limits(self._limits, limits)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def check(self) -> None:
        """Do nothing: there is no disk that could be damaged."""

    def add(
        self, found: Sequence[FoundUrl], refused: Sequence[Refusal], now: float, *, found_on: int | None = None
    ) -> int:
        if found_on is None:
            warn_of_lifted(self.lift(found))
        new = sum(self._hold(each, found_on, now) for each in found)
        for refusal in refused:
            self._refuse(refusal)
        return new

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        if limit <= 0:
            return []
        self._lapse(now)
        sites = {site.id: site for site in self._ready(now) if self._is_owned(site.record.site)}
        turns = [SiteTurn(site.id, self._delay(site), site.taken) for site in sites.values()]
        leases: list[Lease] = []
        for portion in first_portions(
            lambda start: turns[start : start + limit],
            lambda id, count: self._peek(sites[id], now if due is None else due, count),
            self._limits,
            limit,
            seconds,
        ):
            site = sites[portion.site.id]
            leases.extend(self._grant(self._by_id[id], now + seconds) for id in portion.pages)
            if portion.pages:
                site.turn_at = portion.next_turn(now)
                site.taken += len(portion.pages)
            self._set_turn(site)
        return leases

    def lease_url(self, url: str, now: float, seconds: float, *, out_of_turn: bool = False) -> Lease | None:
        self._lapse(now)
        page = self._pages.get(url)
        if page is None or not self._is_free(page):
            return None
        site = page.site
        if site.record.rest_until > now or (site.turn_at > now and not out_of_turn):
            return None
        site.turn_at = max(site.turn_at, now) + self._delay(site)
        site.taken += 1
        lease = self._grant(page, now + seconds)
        self._set_turn(site)
        return lease

    def planned(self, selection: PlanSelection, after: int, limit: int) -> list[PageRecord]:
        pages = [self._by_id[id].record for id in sorted(self._by_id) if id > after]
        return [page for page in pages if _is_selected(page, selection)][: max(0, limit)]

    def count_planned(self, selection: PlanSelection, now: float) -> int:
        pages = (page for page in self._by_id.values() if page.site.record.rest_until <= now)
        return sum(_is_selected(page.record, selection) for page in pages)

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        return [self._commit(result) for result in visits]

    def release(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            if self._fenced(lease):
                page = self._by_id[lease.page.id]
                page.site.turn_at -= self._delay(page.site)
                page.site.due_again(page.record.next_visit or 0.0)

    def forget_leases(self) -> None:
        self._lapse(float("inf"))

    def limit_waits(self, now: float, latest: float) -> int:
        beyond = [site for site in self._sites.values() if self._waits_beyond(site, latest)]
        for site in beyond:
            for page in self._free(site):
                if _is_beyond(page, latest):
                    page.record = _due_now(page.record, now)
            if site.turn_at > latest:
                site.turn_at = now
            if latest < site.record.rest_until < FOREVER:
                site.record = replace(site.record, rest_until=now)
            self._set_turn(site)
        return len(beyond)

    def page(self, url: str) -> PageRecord | None:
        page = self._pages.get(url)
        return page.record if page else None

    def originals(self, texts: Sequence[PageText]) -> list[str | None]:
        return [self._original(text) for text in texts]

    def near_runs(self, sites: Sequence[str]) -> dict[str, bytes]:
        return {site: self._near_runs[site] for site in sites if site in self._near_runs}

    def stats(self, now: float) -> CollectionStats:
        pages = list(self._by_id.values())
        leased = {id for id, lease in self._leases.items() if lease.live and lease.expires_at > now}
        due = [page for page in pages if page.record.visits and page.record.id not in leased and page.is_due(now)]
        times = [site.due_at for site in self._sites.values() if site.due_at is not None]
        times += [lease.expires_at for lease in self._leases.values() if lease.live]
        versions = [each for page in pages for _, each in page.versions.values()]
        refused: Counter[str] = Counter()
        for (_, reason), (n, _) in self._refused.items():
            refused[str(reason)] += n
        return CollectionStats(
            sites=len(self._sites),
            known=len(pages),
            unvisited=sum(page.record.visits == 0 for page in pages),
            due=min(len(due), DUE_COUNTED),
            leased=len(leased),
            stored=sum(page.is_stored for page in pages),
            versions=len(versions),
            next_due=min(times, default=None),
            workable=any(_is_workable(site, now) for site in self._sites.values()),
            states=dict(Counter(str(page.record.state) for page in pages)),
            refused=dict(refused),
            bytes=sum(len(each.content_zstd) for each in versions),
        )

    def url_of(self, page_id: int) -> str | None:
        page = self._by_id.get(page_id)
        return page.record.url if page else None

    def urls_like(self, start: str, limit: int) -> list[str]:
        like = (url for url in sorted(self._pages) if url.startswith(start))
        return list(islice(like, max(0, limit)))

    def newest_seq(self) -> int:
        return self._seq

    def site(self, site: str) -> SiteRecord | None:
        there = self._sites.get(site)
        if there is None:
            return None
        refused = sorted((reason, *found) for (where, reason), found in self._refused.items() if where == site)
        return replace(there.record, pages=len(there.pages), refused=tuple(refused))

    def save(self, record: SiteRecord) -> None:
        if self.forgotten_sites([record.site]):
            return
        site = self._site(record.site)
        admitted = record.admitted or site.record.admitted
        site.record = replace(record, admitted=admitted, pages=0, refused=())
        self._set_turn(site)

    def sites(self) -> Iterator[SiteRecord]:
        for name in list(self._sites):
            if (record := self.site(name)) is not None:
                yield record

    def document(self, url: str, version: int | None = None) -> Document | None:
        page = self._pages.get(url)
        if page is None or (version or page.record.version) not in page.versions:
            return None
        return _document_of(page, version or page.record.version)

    def versions(self, url: str) -> list[VersionInfo]:
        page = self._pages.get(url)
        kept = sorted(page.versions.items(), reverse=True) if page else []
        return [VersionInfo(n, at, each.title, each.words, each.similarity, each.data) for n, (at, each) in kept]

    def changes(self, after: int, limit: int) -> list[Change]:
        pages = self._by_id.values()
        changed = [_change_of(page) for page in pages if page.seq > after]
        changed += [Change(seq, id, "", "", None) for id, seq in self._departed.items() if seq > after]
        return sorted(changed, key=lambda change: change.seq)[: max(0, limit)]

    def change_log(self, after: int, limit: int) -> list[ChangeEvent]:
        later = [each for each in self._change_log if each.seq > after]
        return [self._titled(each) for each in later[: max(0, limit)]]

    def scan(self) -> Iterator[Document]:
        for _, page in sorted(self._by_id.items()):
            if page.is_stored:
                yield _document_of(page, page.record.version)

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        one_in = checked_one_in(one_in)
        for id, page in sorted(self._by_id.items()):
            if page.is_stored and drawn(id, one_in):
                yield page.record

    def live_pages(self) -> int:
        return sum(page.is_stored for page in self._by_id.values())

    def outdated(self, hints: Sequence[ChangeHint]) -> list[PageRecord]:
        found: dict[int, PageRecord] = {}
        for hint in hints:
            page = self._pages.get(hint.url)
            if page and page.is_stored and is_new_hint(hint, page.met_at, page.record.told):
                found.setdefault(page.record.id, page.record)
        return list(found.values())

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Signals, float | None]]) -> None:
        for known, signals, at in pages:
            self._bring_forward(known, signals, at)

    def _site(self, name: str) -> _Site:
        """The site of this name, added if it is unknown."""
        if name not in self._sites:
            self._sites[name] = _Site(self._next_site, SiteRecord(name))
            self._next_site += 1
        return self._sites[name]

    def _delay(self, site: _Site) -> float:
        return self._limits.delay_of(site.record.site, site.record.delay)

    def _set_turn(self, site: _Site) -> None:
        """Recompute when the site's next page without a lease may be leased. Of new pages, only the first in order
        counts."""
        free = self._free(site)
        new = sorted((page.priority, page.record.id, page.record.found_at) for page in free if not page.record.visits)
        due = [page.record.next_visit for page in free if page.record.visits and page.record.next_visit is not None]
        site.due_at = None
        for at in (*due, *(found_at for _, _, found_at in new[:1])):
            site.due_again(at)

    def _ready(self, now: float) -> list[_Site]:
        ready = [site for site in self._sites.values() if site.due_at is not None and site.due_at <= now]
        return sorted(ready, key=lambda site: (site.due_at, site.taken, site.id))

    def _waits_beyond(self, site: _Site, latest: float) -> bool:
        rest_until = site.record.rest_until
        waits = site.due_at is not None and site.due_at > latest
        return (
            site.turn_at > latest
            or (rest_until < FOREVER and (rest_until > latest or waits))
            or any(page.record.visits and _is_beyond(page, latest) for page in self._free(site))
        )

    def _hold(self, found: FoundUrl, found_on: int | None, now: float) -> bool:
        known = found.url in self._pages
        if known and not found.admit:
            return False
        if not holdable(found):
            self._refuse(refused_for(found, Reason.BAD_URL))
            return False
        if self._is_forgotten(found.url, found.site):
            self._refuse(refused_for(found, Reason.FORGOTTEN))
            return False
        site = self._site(found.site)
        if found.admit:
            site.record = replace(site.record, admitted=True)
        if known:
            return False
        if is_full(len(site.pages), self._limits.most_pages(found.site)):
            self._refuse(refused_for(found, Reason.SITE_FULL))
            return False
        id = page_number(site.id, len(site.pages) + site.used + 1)
        kind, depth, hops = found.kind, found.depth, found.hops
        record = PageRecord(id, found.url, found.site, kind, PageState.NEW, found.how, depth, hops, now, found_on)
        page = _Page(replace(record, next_visit=now), site, found.priority)
        self._pages[found.url] = page
        self._by_id[id] = page
        site.pages.append(page)
        site.due_again(now)
        return True

    def _refuse(self, refusal: Refusal) -> None:
        # Refusals of unknown sites are counted together: pages can name any number of them.
        key = (refusal.site if refusal.site in self._sites else "", refusal.reason)
        first = "" if self._is_forgotten(refusal.url, site_of(refusal.url)) else example_of(refusal)
        n, example = self._refused.get(key, (0, first))
        self._refused[key] = (n + refusal.count, example)

    def _lapse(self, now: float) -> None:
        for id, lease in self._leases.items():
            if lease.live and lease.expires_at <= now:
                lease.live = False
                page = self._by_id[id]
                page.site.due_again(page.record.next_visit or 0.0)

    def _is_free(self, page: _Page) -> bool:
        lease = self._leases.get(page.record.id)
        return lease is None or not lease.live

    def _free(self, site: _Site) -> list[_Page]:
        return [page for page in site.pages if self._is_free(page)]

    def _peek(self, site: _Site, now: float, count: int) -> tuple[list[int], list[int]]:
        free = self._free(site)
        new = sorted((page.priority, page.record.id) for page in free if page.record.visits == 0)
        due = sorted(
            (page.record.next_visit or 0.0, page.record.id) for page in free if page.record.visits and page.is_due(now)
        )
        return [id for _, id in new[:count]], [id for _, id in due[:count]]

    def _grant(self, page: _Page, expires_at: float) -> Lease:
        self._token += 1
        self._leases[page.record.id] = _Lease(self._token, expires_at)
        return Lease(page.record, self._token, expires_at)

    def _fenced(self, lease: Lease) -> bool:
        there = self._leases.get(lease.page.id)
        if there is None or there.token != lease.token:
            return False
        del self._leases[lease.page.id]
        return True

    def _commit(self, result: VisitResult) -> bool:
        page_text = PageText(result.lease.page.site, result.text_digest or b"")
        if result.is_original and self.originals([page_text])[0] not in (None, result.lease.page.url):
            return False
        if not self._fenced(result.lease):
            return False
        page = self._by_id[result.lease.page.id]
        if result.leads_to is not None and self.forgotten([result.leads_to]):
            result = replace(result, leads_to=None)
        _update(page, result)
        self._keep_content(page, result)
        if result.next_visit is not None:
            page.site.due_again(result.next_visit)
        for found in result.found:
            self._hold(found, page.record.id, result.visit.at)
        for refusal in result.refused:
            self._refuse(refusal)
        if result.near_runs:
            self._near_runs[page.record.site] = result.near_runs
        return True

    def _keep_content(self, page: _Page, result: VisitResult) -> None:
        """Store the version that a visit brought. A page that is gone leaves search, one that is back returns."""
        was_gone = page.gone
        what = change_kind(result, was_gone)
        if result.version is not None:
            number = version_after(result)
            stored_at, version = result.visit.at, _storable(result.version)
            if amends(result):
                stored_at, before = page.versions[number]
                data = amended_data(before.data, stored_at, version.data, result.visit.at)
                version = replace(version, similarity=before.similarity, data=data)
            page.record = replace(page.record, version=number, sketch=version.sketch)
            page.versions[number] = (stored_at, version)
            versions = sorted((number, at) for number, (at, _) in page.versions.items())
            for old in expendable(versions, stored_at, self._limits.retention):
                del page.versions[old]
        if page.record.version == 0:
            return
        if is_removed(result.state):
            page.gone = True
        elif result.version is not None or result.state is PageState.LIVE:
            page.gone = False
        if result.version is not None or page.gone != was_gone:
            self._seq += 1
            page.seq = self._seq
        if what is not None:
            similarity = result.version.similarity if result.version else 1.0
            page_facts = (page.record.id, page.record.url, page.record.site, page.record.version)
            self._change_log.append(ChangeEvent(self._seq, result.visit.at, what, *page_facts, similarity))
            if self._seq % TIDIED_EVERY == 0:
                kept = self._seq - self._limits.keep_events
                self._change_log = [each for each in self._change_log if each.seq > kept]

    def _original(self, text: PageText) -> str | None:
        key, site = text_key(text.site, text.digest), self._sites.get(text.site)
        if key is None or site is None:
            return None
        stored = (page.record for page in site.pages if page.is_stored)
        return next((page.url for page in stored if text_key(page.site, page.text_digest) == key), None)

    def _titled(self, each: ChangeEvent) -> ChangeEvent:
        kept = self._by_id[each.page_id].versions.get(each.version)
        return replace(each, title=kept[1].title if kept else "")

    def _bring_forward(self, known: PageRecord, signals: Signals, at: float | None) -> None:
        page = self._by_id.get(known.id)
        if page is None or not self._is_free(page) or page.record.visits != known.visits or not known.visits:
            return
        planned = page.record.next_visit
        next_visit = brought_forward(planned, at)
        page.record = replace(page.record, told=page.record.told | signals, next_visit=next_visit)
        if next_visit is not None and next_visit != planned:
            page.site.due_again(next_visit)


def _update(page: _Page, result: VisitResult) -> None:
    if met_content(result):
        page.met_at = result.visit.at
    if (validators := validators_after(result)) is not None:
        page.record = replace(page.record, **asdict(validators))
    page.record = replace(
        page.record,
        kind=result.kind,
        state=result.state,
        reason=result.reason,
        leads_to=result.leads_to,
        visits=page.record.visits + 1,
        history=remember(page.record.history, result.visit),
        interval=result.interval,
        next_visit=result.next_visit,
        failures=result.failures,
        memory=result.memory or page.record.memory,
        told=page.record.told & unconfirmed_signals(result.visit),
    )


def _is_selected(page: PageRecord, selection: PlanSelection) -> bool:
    return (
        page.visits > 0
        and page.next_visit is not None
        and selection.later_than < page.next_visit <= selection.until
        and selection.site in ("", page.site)
        and (page.failures > 0 or not selection.failing)
    )


def _is_beyond(page: _Page, latest: float) -> bool:
    return page.record.next_visit is not None and page.record.next_visit > latest


def _due_now(record: PageRecord, now: float) -> PageRecord:
    """The record, due now. A new page is due from when it was found."""
    return replace(record, next_visit=now, found_at=record.found_at if record.visits else now)


def _is_workable(site: _Site, now: float) -> bool:
    return site.record.rest_until <= now and any(page.record.visits == 0 or page.is_due(now) for page in site.pages)


def _storable(version: NewVersion) -> NewVersion:
    headers = tuple((plain_text(name), plain_text(value)) for name, value in version.headers)
    return replace(version, title=plain_text(version.title), headers=headers)


def _change_of(page: _Page) -> Change:
    record, shown = page.record, None
    if not page.gone and (document := _document_of(page, record.version)).searchable:
        _, anchors = unpacked_text(page.versions[record.version][1].content_zstd)
        shown = replace(document, body=b"", screenshot=b"", packed_anchors=anchors)
    return Change(page.seq, record.id, record.url, record.site, shown)


def _document_of(page: _Page, number: int) -> Document:
    fetched_at, version = page.versions[number]
    current = number == page.record.version
    text, body = unpacked(version.content_zstd)
    return Document(
        page_id=page.record.id,
        url=page.record.url,
        site=page.record.site,
        version=number,
        title=version.title,
        language=version.language,
        charset=version.charset,
        text=text,
        body=body,
        status=version.status,
        headers=version.headers,
        fetched_at=fetched_at,
        checked_at=page.met_at if current else fetched_at,
        words=version.words,
        similarity=version.similarity,
        searchable=version.searchable,
        gone=page.gone,
        facts=version.facts,
        packed_data=version.data,
        screenshot=picture_of(version.content_zstd),
    )
