"""The store in memory: the reference that every other store must match, lost when the process ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar

from msgspec.structs import replace

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
    PageRecord,
    PageState,
    Refusal,
    Signals,
    SiteRecord,
    VersionInfo,
    VisitResult,
)
from levada.store.base import Capability, StoreLimits
from levada.store.fair_leasing import SiteTurn, first_portions
from levada.store.memory.state import (
    MemoryData,
    MemoryLease,
    MemoryPage,
    MemorySite,
    change_of,
    document_of,
    keep_content,
)
from levada.store.rules import (
    DUE_COUNTED,
    brought_forward,
    checked_one_in,
    example_of,
    holdable,
    is_full,
    is_new_hint,
    met_content,
    page_number,
    refused_for,
    remember,
    unconfirmed_signals,
    validators_after,
)


class MemoryStore:
    """Everything of one crawl in dictionaries; nothing outlives the process."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    away: ClassVar[Mapping[int, str]] = {}
    format: ClassVar[int] = 0

    def __init__(self, *, limits: StoreLimits | None = None) -> None:
        self._held = MemoryData(limits or StoreLimits())

    @property
    def shards(self) -> tuple[MemoryStore]:
        return (self,)

    logs = shards

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def check(self) -> None:
        """Do nothing: there is no disk that could be damaged."""

    def add(self, found: Sequence[FoundUrl], refused: Sequence[Refusal], now: float) -> int:
        new = sum(self._hold(each, None, now) for each in found)
        for refusal in refused:
            self._refuse(refusal)
        return new

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        if limit <= 0:
            return []
        self._lapse(now)
        due_by = now if due is None else due
        sites = {site.id: site for site in self._ready(now)}
        turns = [SiteTurn(site.id, self._held.delay(site), site.taken) for site in sites.values()]
        leases: list[Lease] = []
        for portion in first_portions(
            lambda start: turns[start : start + limit],
            lambda id, count: self._peek(sites[id], due_by, count),
            self._held.limits,
            limit,
            seconds,
        ):
            site = sites[portion.site.id]
            leases.extend(self._grant(self._held.by_id[id], now + seconds) for id in portion.pages)
            if portion.pages:
                site.turn_at = portion.next_turn(now)
                site.taken += len(portion.pages)
            self._held.set_turn(site)
        return leases

    def lease_url(self, url: str, now: float, seconds: float) -> Lease | None:
        self._lapse(now)
        page = self._held.pages.get(url)
        if page is None or not self._held.is_free(page):
            return None
        site = page.site
        if max(site.turn_at, site.record.rest_until) > now:
            return None
        site.turn_at = now + self._held.delay(site)
        site.taken += 1
        lease = self._grant(page, now + seconds)
        self._held.set_turn(site)
        return lease

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        return [self._commit(result) for result in visits]

    def release(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            if self._fenced(lease):
                page = self._held.by_id[lease.page.id]
                page.site.turn_at -= self._held.delay(page.site)
                page.site.due_again(page.record.next_visit or 0.0)

    def forget_leases(self) -> None:
        self._lapse(float("inf"))

    def limit_waits(self, now: float, latest: float) -> int:
        beyond = [site for site in self._held.sites.values() if self._waits_beyond(site, latest)]
        for site in beyond:
            for page in self._free(site):
                if _is_beyond(page, latest):
                    page.record = _due_now(page.record, now)
            if site.turn_at > latest:
                site.turn_at = now
            if latest < site.record.rest_until < FOREVER:
                site.record = replace(site.record, rest_until=now)
            self._held.set_turn(site)
        return len(beyond)

    def page(self, url: str) -> PageRecord | None:
        page = self._held.pages.get(url)
        return page.record if page else None

    def stats(self, now: float) -> CollectionStats:
        held, pages = self._held, list(self._held.by_id.values())
        leased = {id for id, lease in held.leases.items() if lease.live and lease.expires_at > now}
        due = [page for page in pages if page.record.visits and page.record.id not in leased and page.is_due(now)]
        times = [site.due_at for site in held.sites.values() if site.due_at is not None]
        times += [lease.expires_at for lease in held.leases.values() if lease.live]
        versions = [each for page in pages for _, each in page.versions.values()]
        return CollectionStats(
            sites=len(held.sites),
            known=len(pages),
            unvisited=sum(page.record.visits == 0 for page in pages),
            due=min(len(due), DUE_COUNTED),
            leased=len(leased),
            stored=sum(page.is_stored for page in pages),
            versions=len(versions),
            next_due=min(times, default=None),
            workable=any(_is_workable(site, now) for site in held.sites.values()),
            states=_counted([(page.record.state, 1) for page in pages]),
            refused=_counted([(reason, n) for (_, reason), (n, _) in held.refused.items()]),
            bytes=sum(len(each.content_zstd) for each in versions),
        )

    def url_of(self, page_id: int) -> str | None:
        page = self._held.by_id.get(page_id)
        return page.record.url if page else None

    def urls_like(self, start: str, limit: int) -> list[str]:
        like = (url for url in sorted(self._held.pages) if url.startswith(start))
        return list(islice(like, max(0, limit)))

    def newest_seq(self) -> int:
        return self._held.seq

    def site(self, site: str) -> SiteRecord | None:
        there = self._held.sites.get(site)
        if there is None:
            return None
        refused = sorted((reason, *found) for (where, reason), found in self._held.refused.items() if where == site)
        return replace(there.record, pages=len(there.pages), refused=tuple(refused))

    def save(self, record: SiteRecord) -> None:
        site = self._held.site(record.site)
        admitted = record.admitted or site.record.admitted
        site.record = replace(record, admitted=admitted, pages=0, refused=())
        self._held.set_turn(site)

    def sites(self) -> Iterator[SiteRecord]:
        for name in list(self._held.sites):
            if (record := self.site(name)) is not None:
                yield record

    def document(self, url: str, version: int | None = None) -> Document | None:
        page = self._held.pages.get(url)
        if page is None or (version or page.record.version) not in page.versions:
            return None
        return document_of(page, version or page.record.version)

    def versions(self, url: str) -> list[VersionInfo]:
        page = self._held.pages.get(url)
        kept = sorted(page.versions.items(), reverse=True) if page else []
        return [VersionInfo(n, at, each.title, each.words, each.similarity) for n, (at, each) in kept]

    def changes(self, after: int, limit: int) -> list[Change]:
        pages = self._held.by_id.values()
        changed = sorted((page for page in pages if page.seq > after), key=lambda page: page.seq)
        return [change_of(page) for page in changed[: max(0, limit)]]

    def change_log(self, after: int, limit: int) -> list[ChangeEvent]:
        later = [each for each in self._held.change_log if each.seq > after]
        return [self._titled(each) for each in later[: max(0, limit)]]

    def scan(self) -> Iterator[Document]:
        for _, page in sorted(self._held.by_id.items()):
            if page.is_stored:
                yield document_of(page, page.record.version)

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        one_in = checked_one_in(one_in)
        for id, page in sorted(self._held.by_id.items()):
            if page.is_stored and drawn(id, one_in):
                yield page.record

    def live_pages(self) -> int:
        return sum(page.is_stored for page in self._held.by_id.values())

    def outdated(self, hints: Sequence[ChangeHint]) -> list[PageRecord]:
        found: dict[int, PageRecord] = {}
        for hint in hints:
            page = self._held.pages.get(hint.url)
            if page and page.is_stored and is_new_hint(hint, page.met_at, page.record.told):
                found.setdefault(page.record.id, page.record)
        return list(found.values())

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Signals, float | None]]) -> None:
        for known, signals, at in pages:
            self._bring_forward(known, signals, at)

    def _ready(self, now: float) -> list[MemorySite]:
        turns = [
            (site.due_at, site.taken, site.id, site)
            for site in self._held.sites.values()
            if site.due_at is not None and site.due_at <= now
        ]
        return [site for *_, site in sorted(turns, key=lambda each: each[:3])]

    def _waits_beyond(self, site: MemorySite, latest: float) -> bool:
        rest_until = site.record.rest_until
        waits = site.due_at is not None and site.due_at > latest
        return (
            site.turn_at > latest
            or (rest_until < FOREVER and (rest_until > latest or waits))
            or any(page.record.visits and _is_beyond(page, latest) for page in self._free(site))
        )

    def _hold(self, found: FoundUrl, found_on: int | None, now: float) -> bool:
        known = found.url in self._held.pages
        if known and not found.admit:
            return False
        if not holdable(found):
            self._refuse(refused_for(found, Reason.BAD_URL))
            return False
        site = self._held.site(found.site)
        if found.admit:
            site.record = replace(site.record, admitted=True)
        if known:
            return False
        if is_full(len(site.pages), self._held.limits.max_pages_per_site):
            self._refuse(refused_for(found, Reason.SITE_FULL))
            return False
        id = page_number(site.id, len(site.pages) + 1)
        page = MemoryPage(_new_record(id, found, found_on, now), site, found.priority)
        self._held.pages[found.url] = page
        self._held.by_id[id] = page
        site.pages.append(page)
        site.due_again(now)
        return True

    def _refuse(self, refusal: Refusal) -> None:
        # Refusals of unknown sites are counted together: pages can name any number of them.
        key = (refusal.site if refusal.site in self._held.sites else "", refusal.reason)
        n, example = self._held.refused.get(key, (0, example_of(refusal)))
        self._held.refused[key] = (n + 1, example)

    def _lapse(self, now: float) -> None:
        for id, lease in self._held.leases.items():
            if lease.live and lease.expires_at <= now:
                lease.live = False
                page = self._held.by_id[id]
                page.site.due_again(page.record.next_visit or 0.0)

    def _free(self, site: MemorySite) -> list[MemoryPage]:
        return [page for page in site.pages if self._held.is_free(page)]

    def _peek(self, site: MemorySite, now: float, count: int) -> tuple[list[int], list[int]]:
        free = self._free(site)
        new = sorted((page.priority, page.record.id) for page in free if page.record.visits == 0)
        due = sorted(
            (page.record.next_visit or 0.0, page.record.id) for page in free if page.record.visits and page.is_due(now)
        )
        return [id for _, id in new[:count]], [id for _, id in due[:count]]

    def _grant(self, page: MemoryPage, expires_at: float) -> Lease:
        self._held.token += 1
        self._held.leases[page.record.id] = MemoryLease(self._held.token, expires_at)
        return Lease(page.record, self._held.token, expires_at)

    def _fenced(self, lease: Lease) -> bool:
        there = self._held.leases.get(lease.page.id)
        if there is None or there.token != lease.token:
            return False
        del self._held.leases[lease.page.id]
        return True

    def _commit(self, result: VisitResult) -> bool:
        if not self._fenced(result.lease):
            return False
        page = self._held.by_id[result.lease.page.id]
        _update(page, result)
        keep_content(self._held, page, result)
        if result.next_visit is not None:
            page.site.due_again(result.next_visit)
        for found in result.found:
            self._hold(found, page.record.id, result.visit.at)
        for refusal in result.refused:
            self._refuse(refusal)
        return True

    def _titled(self, each: ChangeEvent) -> ChangeEvent:
        kept = self._held.by_id[each.page_id].versions.get(each.version)
        return replace(each, title=kept[1].title if kept else "")

    def _bring_forward(self, known: PageRecord, signals: Signals, at: float | None) -> None:
        page = self._held.by_id.get(known.id)
        if page is None or not self._held.is_free(page) or page.record.visits != known.visits or not known.visits:
            return
        planned = page.record.next_visit
        next_visit = brought_forward(planned, at)
        page.record = replace(page.record, told=page.record.told | signals, next_visit=next_visit)
        if next_visit is not None and next_visit != planned:
            page.site.due_again(next_visit)


def _new_record(id: int, found: FoundUrl, found_on: int | None, now: float) -> PageRecord:
    return PageRecord(
        id=id,
        url=found.url,
        site=found.site,
        kind=found.kind,
        state=PageState.NEW,
        how=found.how,
        depth=found.depth,
        hops=found.hops,
        found_at=now,
        found_on=found_on,
        next_visit=now,
    )


def _update(page: MemoryPage, result: VisitResult) -> None:
    if met_content(result):
        page.met_at = result.visit.at
    if (validators := validators_after(result)) is not None:
        page.record = replace(
            page.record,
            etag=validators.etag,
            last_modified=validators.last_modified,
            body_digest=validators.body_digest,
            text_digest=validators.text_digest,
        )
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


def _is_beyond(page: MemoryPage, latest: float) -> bool:
    return page.record.next_visit is not None and page.record.next_visit > latest


def _due_now(record: PageRecord, now: float) -> PageRecord:
    """The record, due now. A new page is due from when it was found."""
    return replace(record, next_visit=now, found_at=record.found_at if record.visits else now)


def _is_workable(site: MemorySite, now: float) -> bool:
    return site.record.rest_until <= now and any(page.record.visits == 0 or page.is_due(now) for page in site.pages)


def _counted(pairs: Sequence[tuple[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for word, n in pairs:
        totals[str(word)] = totals.get(str(word), 0) + n
    return totals
