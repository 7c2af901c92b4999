"""What the flow asks of the world: one protocol per need, at most six methods each.

Every port has a reference in `levada.adapters.memory` that every other adapter must match; the suites in
`tests/contracts` run each one's law on every adapter. Stores answer synchronously (a call is one durable
transaction; the flow keeps them on a thread of their own), the network and the parser asynchronously.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from levada.records import (
    Change,
    Document,
    Found,
    Lease,
    Outcome,
    PageRecord,
    ParsedPage,
    RawPage,
    Refusal,
    Request,
    Response,
    Settled,
    SiteRecord,
    Standing,
    VersionInfo,
    Visit,
)
from levada.searching import Hits, Posting, Query

__all__ = ["Clock", "Documents", "Faults", "Fetcher", "Frontier", "Index", "Parser", "RevisitPolicy", "Sites"]


class Clock(Protocol):
    """Time of the crawled world; see `levada.clock`."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class Frontier(Protocol):
    """Which URLs are there, and which may be visited now?"""

    def add(self, found: Sequence[Found], refused: Sequence[Refusal], now: float) -> int:
        """Hold these URLs; how many were new. Over a site's page limit they are refused and counted."""
        ...

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        """At most `limit` pages that are new or due, spread over sites, each the caller's for `seconds`.

        With `due`, pages visited before count only if they were due by then.
        """
        ...

    def settle(self, visits: Sequence[Settled]) -> list[bool]:
        """Commit these visits, all in one transaction; False where the lease was no longer the newest."""
        ...

    def release(self, leases: Sequence[Lease]) -> None:
        """Give pages back unvisited: they are due as before."""
        ...

    def page(self, url: str) -> PageRecord | None: ...

    def standing(self, now: float) -> Standing: ...


class Sites(Protocol):
    """What is known of each site?"""

    def site(self, site: str) -> SiteRecord | None: ...

    def save(self, record: SiteRecord) -> None:
        """Keep robots, delay, rest and failures (counts are the store's own); a site once admitted stays so."""
        ...

    def sites(self) -> Iterator[SiteRecord]: ...


class Documents(Protocol):
    """What was on a page, now and before?"""

    def document(self, url: str, version: int | None = None) -> Document | None: ...

    def versions(self, url: str) -> list[VersionInfo]:
        """Newest first."""
        ...

    def changes(self, after: int, limit: int) -> list[Change]:
        """The current state of documents that changed after step `after`, in order, without their raw bodies."""
        ...

    def scan(self) -> Iterator[Document]:
        """Every current document, in bounded memory."""
        ...


class Index(Protocol):
    """Where do these words stand?"""

    def apply(self, changes: Sequence[Change]) -> None:
        """Take these changes in, durably and idempotently, and remember the last one's `seq`."""
        ...

    def position(self) -> int:
        """The `seq` up to which the index is durable."""
        ...

    def search(self, query: Query) -> Hits: ...

    def postings(self, word: str, limit: int) -> list[Posting]: ...

    def clear(self) -> None:
        """Forget everything: position 0."""
        ...

    def close(self) -> None: ...


class Fetcher(Protocol):
    """Make one HTTP exchange; a failure is a `Response` with a reason, never an exception."""

    async def fetch(self, request: Request) -> Response: ...
    async def close(self) -> None: ...


class Parser(Protocol):
    """Read untrusted bytes; raises `ParserDied` if the page killed the child that read it."""

    async def parse(self, page: RawPage) -> ParsedPage: ...
    async def close(self) -> None: ...


class RevisitPolicy(Protocol):
    """When do we come back?"""

    def next_interval(self, interval: float | None, history: Sequence[Visit], outcome: Outcome) -> float:
        """Seconds until the next visit, from the stored interval, the visits before this one (at most ten,
        oldest first; only those that compared content) and what this one met."""
        ...


class Faults(Protocol):
    """Where a test may make the disk fail or the process die; does nothing otherwise."""

    def reach(self, point: str) -> None: ...
