"""How do the parts of a store become one? What a port asks goes to the part that knows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from levada.ports import Census, Documents, Frontier, Notices, Sites
from levada.records import (
    Change,
    Document,
    Found,
    Happening,
    Lease,
    Notice,
    PageRecord,
    Refusal,
    Said,
    Settled,
    SiteRecord,
    Standing,
    VersionInfo,
)

__all__ = ["ComposedStore", "StoreFrontier"]


class StoreFrontier(Frontier, Protocol):
    def forget_leases(self) -> None: ...
    def limit_waits(self, now: float, latest: float) -> int: ...


class ComposedStore:
    """Frontier, Sites, Documents, Census and Notices of one crawl."""

    def __init__(
        self, frontier: StoreFrontier, sites: Sites, documents: Documents, census: Census, notices: Notices
    ) -> None:
        self._frontier = frontier
        self._sites = sites
        self._documents = documents
        self._census = census
        self._notices = notices

    def add(self, found: Sequence[Found], refused: Sequence[Refusal], now: float) -> int:
        return self._frontier.add(found, refused, now)

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        return self._frontier.lease(now, limit, seconds, due)

    def settle(self, visits: Sequence[Settled]) -> list[bool]:
        return self._frontier.settle(visits)

    def release(self, leases: Sequence[Lease]) -> None:
        self._frontier.release(leases)

    def forget_leases(self) -> None:
        """For whoever knows that it is the only one: pages leased by processes that died are free at once."""
        self._frontier.forget_leases()

    def limit_waits(self, now: float, latest: float) -> int:
        """What would wait beyond `latest` does so since the clock was wrong: it is due now; of how many sites.

        Pages that somebody holds stay as they are, and sites that were dropped rest on.
        """
        return self._frontier.limit_waits(now, latest)

    def page(self, url: str) -> PageRecord | None:
        return self._frontier.page(url)

    def standing(self, now: float) -> Standing:
        return self._frontier.standing(now)

    def site(self, site: str) -> SiteRecord | None:
        return self._sites.site(site)

    def save(self, record: SiteRecord) -> None:
        self._sites.save(record)

    def sites(self) -> Iterator[SiteRecord]:
        return self._sites.sites()

    def document(self, url: str, version: int | None = None) -> Document | None:
        return self._documents.document(url, version)

    def versions(self, url: str) -> list[VersionInfo]:
        return self._documents.versions(url)

    def changes(self, after: int, limit: int) -> list[Change]:
        return self._documents.changes(after, limit)

    def happenings(self, after: int, limit: int) -> list[Happening]:
        return self._documents.happenings(after, limit)

    def scan(self) -> Iterator[Document]:
        return self._documents.scan()

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        return self._census.sample(one_in)

    def live_pages(self) -> int:
        return self._census.live_pages()

    def outdated(self, notices: Sequence[Notice]) -> list[PageRecord]:
        return self._notices.outdated(notices)

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Said, float | None]]) -> None:
        self._notices.bring_forward(pages)
