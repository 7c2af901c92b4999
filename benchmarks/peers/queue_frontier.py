"""A frontier that is a queue and a seen-set, as the peer's is: no store is measured in that row."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from levada.core.records import (
    CollectionStats,
    FoundUrl,
    Lease,
    PageRecord,
    PageState,
    PageText,
    Refusal,
    SiteRecord,
    VisitResult,
)


class QueueFrontier:
    """The Frontier and Sites ports, without a memory of visits: every page is visited once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._queue: deque[PageRecord] = deque()
        self._sites: dict[str, SiteRecord] = {}
        self._leased = 0
        self._token = 0

    def add(
        self, found: Sequence[FoundUrl], refused: Sequence[Refusal], now: float, *, found_on: int | None = None
    ) -> int:
        before = len(self._seen)
        for item in found:
            if item.url in self._seen:
                continue
            self._seen.add(item.url)
            if item.admit:
                self._sites[item.site] = SiteRecord(item.site, admitted=True)
            self._queue.append(
                PageRecord(len(self._seen), item.url, item.site, item.kind, PageState.NEW, item.how, item.depth, 0, now)
            )
        return len(self._seen) - before

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        pages = [self._queue.popleft() for _ in range(min(limit, len(self._queue)))]
        self._leased += len(pages)
        self._token += len(pages)
        return [Lease(page, self._token - place, now + seconds) for place, page in enumerate(pages)]

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        self._leased -= len(visits)
        for result in visits:
            self.add(result.found, (), result.visit.at)
        return [True] * len(visits)

    def release(self, leases: Sequence[Lease]) -> None:
        self._queue.extend(lease.page for lease in leases)

    def page(self, url: str) -> PageRecord | None:
        return None

    def originals(self, texts: Sequence[PageText]) -> list[str | None]:
        return [None] * len(texts)

    def near_runs(self, sites: Sequence[str]) -> dict[str, bytes]:
        return {}

    def stats(self, now: float) -> CollectionStats:
        return CollectionStats(unvisited=len(self._queue), leased=self._leased, workable=bool(self._queue))

    def site(self, site: str) -> SiteRecord | None:
        return self._sites.get(site)

    def save(self, record: SiteRecord) -> None:
        self._sites[record.site] = record

    def sites(self) -> Iterator[SiteRecord]:
        yield from list(self._sites.values())
