"""What the flow asks of the world: one protocol per need, at most six methods each.

Every port has a reference in `levada.adapters.memory` that every other adapter must match; the suites in
`tests/contracts` run each one's law on every adapter. Stores answer synchronously (a call is one durable
transaction; the flow keeps them on a thread of their own), the network and the parser asynchronously.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from levada.counts import CountedRound, PageTerms, TermGrowth, TrendQuery
from levada.orders import Order, Wishes
from levada.records import (
    Change,
    Crew,
    Document,
    Found,
    Happening,
    Hook,
    Lease,
    Notice,
    PageRecord,
    ParsedPage,
    Plan,
    RawPage,
    Refusal,
    Request,
    Response,
    Said,
    Settled,
    SiteRecord,
    Standing,
    VersionInfo,
    Visit,
)
from levada.searching import Hits, Posting, Query

__all__ = [
    "Beliefs",
    "Census",
    "Clock",
    "Documents",
    "Faults",
    "Fetcher",
    "Frontier",
    "Hooks",
    "Index",
    "Notices",
    "Orders",
    "Parser",
    "RevisitPolicy",
    "Sites",
    "Trends",
    "Workforce",
]


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

    def happenings(self, after: int, limit: int) -> list[Happening]:
        """Everything that happened to documents after step `after`, in order, each once and for ever the same; the
        newest are kept (`StoreLimits.keep_happenings`)."""
        ...

    def scan(self) -> Iterator[Document]:
        """Every current document, in bounded memory."""
        ...


class Index(Protocol):
    """Where do these words stand?"""

    def apply(self, changes: Iterable[Change]) -> int:
        """Take these changes in, durably and idempotently, and remember the last one's `seq`; how many there were.

        They need not all be in memory at once, and are none of them taken in if one cannot be had.
        """
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


class Trends(Protocol):
    """How often does a term stand in documents, and how often was it added to them, and when?"""

    def position(self) -> int:
        """The `seq` of the documents' change log up to which everything is counted."""
        ...

    def counted(self, page_ids: Sequence[int]) -> dict[int, PageTerms]:
        """What was counted of these pages before, where anything was."""
        ...

    def commit(self, round: CountedRound) -> bool:
        """Add a round, in one transaction; False, and nothing is changed, if others counted on meanwhile."""
        ...

    def frequency(self, term: str, language: str | None = None) -> int:
        """In how many documents a folded term stands, in one language or all; "": how many there are."""
        ...

    def growth(self, query: TrendQuery) -> list[TermGrowth]:
        """The terms that were added often enough since then, by language and term, and the totals (term "")."""
        ...

    def tidy(self, oldest: float, rare_before: float, rare: int) -> None:
        """Forget windows that begin before `oldest`; of each whole day (UTC) before `rare_before` also the terms
        that fewer than `rare` changes of that day added, in a language, on all sites together."""
        ...


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

    @property
    def beliefs(self) -> Beliefs: ...

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        """Until the next visit, from what was known of the page before this one (that compared content, or is the
        first) and what it met; `modified` is when the server says that the page last changed."""
        ...

    def expect(self, page: PageRecord, said: Said) -> float | None:
        """When to visit a page now that somebody told of a change since its last visit; None: as planned."""
        ...

    def asks_whole(self, page: PageRecord) -> bool:
        """Whether to fetch the page even if the server would say that it has not changed."""
        ...

    def restrain(self, site: str, per_second: float) -> None:
        """No more visits than these can be made to the site."""
        ...

    def afford(self, per_hour: float) -> None:
        """From now on so many fetches may be made per hour; 0: there is no limit."""
        ...

    def price(self) -> float:
        """What a visit must be worth now, in seconds; the less, the sooner. 0 for a policy that knows no price."""
        ...


class Beliefs(Protocol):
    """What is believed of all pages together?"""

    def learn(self, pages: Iterable[PageRecord], one_in: int) -> None:
        """Start from these pages, a sample of one in so many (`Census`)."""
        ...

    def forget(self, page: PageRecord) -> None:
        """It is no longer among the pages held."""
        ...

    def share(self, now: float) -> float | None:
        """The share of the pages held that is believed to be current; None while there are none."""
        ...


class Census(Protocol):
    """What are the pages like that were visited before?"""

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        """Of the pages with a stored document those that are `drawn` (`levada.hashing`), in bounded memory."""
        ...

    def live_pages(self) -> int:
        """How many pages have a stored document."""
        ...


class Notices(Protocol):
    """Which pages did somebody tell of, and when are they visited then?"""

    def outdated(self, notices: Sequence[Notice]) -> list[PageRecord]:
        """Those of the pages told of that have a stored document, were last met before the time told, and are not
        known to have been told of by the same source already."""
        ...

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Said, float | None]]) -> None:
        """Note who told of a change, and visit at that time if it is before the one planned; the page's next
        visit is never put off, and a page that was visited meanwhile is left alone."""
        ...


class Workforce(Protocol):
    """The workers of one stage, of whom there may be more or fewer."""

    def look(self) -> Crew: ...

    def resize(self, wanted: int) -> None:
        """Have so many soon. A worker that goes finishes what it has; nothing is lost."""
        ...


class Orders(Protocol):
    """What do people outside want of the crawl? Kept until it is obeyed; several processes may give orders."""

    def give(self, order: Order) -> int:
        """Durable when this returns; the order's number."""
        ...

    def pending(self) -> list[tuple[int, Order]]:
        """Those not obeyed yet, with their numbers, in the order in which they were given."""
        ...

    def obeyed(self, number: int, wishes: Wishes) -> None:
        """All up to this one are done, and leave these wishes."""
        ...

    def wishes(self) -> Wishes: ...

    def close(self) -> None: ...


class Hooks(Protocol):
    """Who wants to be told of changes, and how far is each?"""

    def hooks(self) -> list[Hook]: ...

    def add(self, hook: Hook) -> None: ...

    def update(self, hook: Hook) -> bool:
        """False if it was removed meanwhile."""
        ...

    def remove(self, id: str) -> bool: ...

    def close(self) -> None: ...


class Faults(Protocol):
    """Where a test may make the disk fail or the process die; does nothing otherwise."""

    def reach(self, point: str) -> None: ...
