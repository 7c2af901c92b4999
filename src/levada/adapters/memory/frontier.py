"""Which URLs are there, and which may be visited now? The `Frontier` port in memory."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from levada.adapters.keeping import (
    DUE_COUNTED,
    example_of,
    holdable,
    is_full,
    met_content,
    page_number,
    refused_for,
    remember,
    still_told,
    validators_after,
)
from levada.adapters.memory.documents import keep_content
from levada.adapters.memory.held import Held, HeldLease, HeldPage, HeldSite
from levada.adapters.turns import SiteTurn, first_portions
from levada.reasons import Reason
from levada.records import FOREVER, Found, Lease, PageRecord, PageState, Refusal, Settled, Standing

__all__ = ["MemoryFrontier"]


class MemoryFrontier:
    def __init__(self, held: Held) -> None:
        self._held = held

    def add(self, found: Sequence[Found], refused: Sequence[Refusal], now: float) -> int:
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

    def settle(self, visits: Sequence[Settled]) -> list[bool]:
        return [self._settle(settled) for settled in visits]

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

    def standing(self, now: float) -> Standing:
        held, pages = self._held, list(self._held.by_id.values())
        leased = {id for id, lease in held.leases.items() if lease.live and lease.expires_at > now}
        due = [page for page in pages if page.record.visits and page.record.id not in leased and page.is_due(now)]
        times = [site.due_at for site in held.sites.values() if site.due_at is not None]
        times += [lease.expires_at for lease in held.leases.values() if lease.live]
        versions = [each for page in pages for _, each in page.versions.values()]
        return Standing(
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

    def _ready(self, now: float) -> list[HeldSite]:
        turns = [
            (site.due_at, site.taken, site.id, site)
            for site in self._held.sites.values()
            if site.due_at is not None and site.due_at <= now
        ]
        return [site for *_, site in sorted(turns, key=lambda each: each[:3])]

    def _waits_beyond(self, site: HeldSite, latest: float) -> bool:
        rest_until = site.record.rest_until
        waits = site.due_at is not None and site.due_at > latest
        return (
            site.turn_at > latest
            or (rest_until < FOREVER and (rest_until > latest or waits))
            or any(page.record.visits and _is_beyond(page, latest) for page in self._free(site))
        )

    def _hold(self, found: Found, found_on: int | None, now: float) -> bool:
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
        page = HeldPage(_new_record(id, found, found_on, now), site, found.priority)
        self._held.pages[found.url] = page
        self._held.by_id[id] = page
        site.pages.append(page)
        site.due_again(now)
        return True

    def _refuse(self, refusal: Refusal) -> None:
        # Sites that are not held are counted together: pages can name any number of them.
        key = (refusal.site if refusal.site in self._held.sites else "", refusal.reason)
        n, example = self._held.refused.get(key, (0, example_of(refusal)))
        self._held.refused[key] = (n + 1, example)

    def _lapse(self, now: float) -> None:
        for id, lease in self._held.leases.items():
            if lease.live and lease.expires_at <= now:
                lease.live = False
                page = self._held.by_id[id]
                page.site.due_again(page.record.next_visit or 0.0)

    def _free(self, site: HeldSite) -> list[HeldPage]:
        return [page for page in site.pages if self._held.is_free(page)]

    def _peek(self, site: HeldSite, now: float, count: int) -> tuple[list[int], list[int]]:
        free = self._free(site)
        new = sorted((page.priority, page.record.id) for page in free if page.record.visits == 0)
        due = sorted(
            (page.record.next_visit or 0.0, page.record.id)
            for page in free
            if page.record.visits and page.is_due(now)
        )
        return [id for _, id in new[:count]], [id for _, id in due[:count]]

    def _grant(self, page: HeldPage, expires_at: float) -> Lease:
        self._held.token += 1
        self._held.leases[page.record.id] = HeldLease(self._held.token, expires_at)
        return Lease(page.record, self._held.token, expires_at)

    def _fenced(self, lease: Lease) -> bool:
        there = self._held.leases.get(lease.page.id)
        if there is None or there.token != lease.token:
            return False
        del self._held.leases[lease.page.id]
        return True

    def _settle(self, settled: Settled) -> bool:
        if not self._fenced(settled.lease):
            return False
        page = self._held.by_id[settled.lease.page.id]
        _update(page, settled)
        keep_content(self._held, page, settled)
        if settled.next_visit is not None:
            page.site.due_again(settled.next_visit)
        for found in settled.found:
            self._hold(found, page.record.id, settled.visit.at)
        for refusal in settled.refused:
            self._refuse(refusal)
        return True


def _new_record(id: int, found: Found, found_on: int | None, now: float) -> PageRecord:
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


def _update(page: HeldPage, settled: Settled) -> None:
    if met_content(settled):
        page.met_at = settled.visit.at
    if (validators := validators_after(settled)) is not None:
        page.record = replace(
            page.record,
            etag=validators.etag,
            last_modified=validators.last_modified,
            body_digest=validators.body_digest,
            text_digest=validators.text_digest,
        )
    page.record = replace(
        page.record,
        kind=settled.kind,
        state=settled.state,
        reason=settled.reason,
        leads_to=settled.leads_to,
        visits=page.record.visits + 1,
        history=remember(page.record.history, settled.visit),
        interval=settled.interval,
        next_visit=settled.next_visit,
        failures=settled.failures,
        memory=settled.memory or page.record.memory,
        told=page.record.told & still_told(settled.visit),
    )


def _is_beyond(page: HeldPage, latest: float) -> bool:
    return page.record.next_visit is not None and page.record.next_visit > latest


def _due_now(record: PageRecord, now: float) -> PageRecord:
    """One that is new has been due since it was found."""
    return replace(record, next_visit=now, found_at=record.found_at if record.visits else now)


def _is_workable(site: HeldSite, now: float) -> bool:
    return site.record.rest_until <= now and any(page.record.visits == 0 or page.is_due(now) for page in site.pages)


def _counted(pairs: Sequence[tuple[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for word, n in pairs:
        totals[str(word)] = totals.get(str(word), 0) + n
    return totals
