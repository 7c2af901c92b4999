"""What the crawl engine asks of the world: one protocol per need.

Every port has a reference in memory (of stores, `levada.store.memory`) that every other adapter must match; the
suites in `tests/contracts` run each one's law on every adapter. What else a store offers is declared in
`levada.store.base`. Stores answer synchronously (a call is one durable transaction; the engine keeps them on a
thread of their own), the network and the parser asynchronously.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from levada.core.commands import ControlCommand, DesiredState
from levada.core.records import (
    Change,
    ChangeEvent,
    ChangeHint,
    CollectionStats,
    Document,
    FoundUrl,
    Lease,
    PageRecord,
    ParsedPage,
    Plan,
    RawPage,
    ReadPage,
    Refusal,
    Request,
    Response,
    Signals,
    SiteRecord,
    StoredPage,
    VersionInfo,
    Visit,
    VisitResult,
    Webhook,
)
from levada.core.search_records import CountedRound, Hits, PageTerms, Posting, Query, TermGrowth, TrendQuery

if TYPE_CHECKING:
    from pathlib import Path

    from levada.core.files import ExportContext


class Clock(Protocol):
    """Time of the crawled world; see `levada.core.clock`."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class Frontier(Protocol):
    """Which URLs are there, and which may be visited now?"""

    def add(self, found: Sequence[FoundUrl], refused: Sequence[Refusal], now: float) -> int:
        """Hold these URLs; how many were new. Over a site's page limit they are refused and counted."""
        ...

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        """At most `limit` pages that are new or due, spread over sites, each the caller's for `seconds`.

        With `due`, pages visited before count only if they were due by then.
        """
        ...

    def lease_url(self, url: str, now: float, seconds: float) -> Lease | None:
        """This page, whenever it is due; None if it is not known, is held, or its site's turn has not come.

        The site's turn passes as with `lease`, so that whoever leases next stays polite.
        """
        ...

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        """Commit these visits, all in one transaction; False where the lease was no longer the newest."""
        ...

    def release(self, leases: Sequence[Lease]) -> None:
        """Give pages back unvisited: they are due as before."""
        ...

    def page(self, url: str) -> PageRecord | None: ...

    def stats(self, now: float) -> CollectionStats: ...


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

    def change_log(self, after: int, limit: int) -> list[ChangeEvent]:
        """Everything that happened to documents after step `after`, in order, each once and for ever the same; the
        newest are kept (`StoreLimits.keep_events`)."""
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


class PageReader(Protocol):
    """Reads bodies of some content types; runs in the parser's child, under its limits.

    A body that is not what its content type says is refused with a `ValueError`.

    ```python
    class NoteReader:
        content_types = ("text/x-note",)

        def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
            title, _, text = body.decode("utf-8", "replace").partition("\\n\\n")
            return ReadPage(title=title, text=text)
    ```
    """

    @property
    def content_types(self) -> tuple[str, ...]:
        """In lower case, without parameters."""
        ...

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage: ...


class Extractor(Protocol):
    """Finds the main text of an HTML page; runs in the parser's child, under its limits.

    ```python
    class WholeText:
        def extract(self, html: str, url: str) -> str:
            return re.sub(r"<[^>]*>", " ", html)
    ```
    """

    def extract(self, html: str, url: str) -> str: ...


class ChangeFilter(Protocol):
    """Leaves out of a page's text what does not count as a change; runs in the parser's child, under its limits.

    What is stored and shown stays whole: only the comparison with the version before sees the filtered text.

    ```python
    class WithoutNumbers:
        def filter(self, text: str, url: str) -> str:
            return re.sub(r"\\d+", "", text)
    ```
    """

    def filter(self, text: str, url: str) -> str: ...


class Exporter(Protocol):
    """Writes stored pages in one format.

    ```python
    class AddressExporter:
        suffix = ".txt"

        def export(self, documents: Iterator[Document], out: Path, context: ExportContext) -> int:
            with context.open(out) as file:
                for document in documents:
                    file.write(document.url.encode() + b"\\n")
                return file.written
    ```
    """

    @property
    def suffix(self) -> str:
        """How names of its files end, such as ".jsonl"; "": it writes a folder."""
        ...

    def export(self, documents: Iterator[Document], out: Path, context: ExportContext) -> int:
        """Write all documents in bounded memory; how many bytes. Nothing is left of an export that fails."""
        ...


class Notifier(Protocol):
    """Tells others of changes; the server calls it, in the order of the change log.

    A batch that raises is told again later, so one change may be told twice.

    ```python
    class PrintNotifier:
        def notify(self, changes: Sequence[ChangeEvent]) -> None:
            for change in changes:
                print(change.what, change.url)
    ```
    """

    def notify(self, changes: Sequence[ChangeEvent]) -> None: ...


class PageHook(Protocol):
    """Called after a page is stored, on a thread of its own; its failures are counted and stop nothing.

    ```python
    class PrintHook:
        def after_page(self, page: StoredPage) -> None:
            print(page.outcome.name, page.url)
    ```
    """

    def after_page(self, page: StoredPage) -> None: ...


class RevisitPolicy(Protocol):
    """When do we come back?"""

    @property
    def estimates(self) -> Estimates: ...

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        """Until the next visit, from what was known of the page before this one (that compared content, or is the
        first) and what it met; `modified` is when the server says that the page last changed."""
        ...

    def visit_after_hint(self, page: PageRecord, said: Signals) -> float | None:
        """When to visit a page now that somebody told of a change since its last visit; None: as planned."""
        ...

    def wants_full_fetch(self, page: PageRecord) -> bool:
        """Whether to fetch the page even if the server would say that it has not changed."""
        ...

    def limit_site(self, site: str, per_second: float) -> None:
        """No more visits than these can be made to the site."""
        ...

    def set_budget(self, per_hour: float) -> None:
        """From now on so many fetches may be made per hour; 0: there is no limit."""
        ...

    def price(self) -> float:
        """What a visit must be worth now, in seconds; the less, the sooner. 0 for a policy that knows no price."""
        ...


class Estimates(Protocol):
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


class PageSample(Protocol):
    """What are the pages like that were visited before?"""

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        """Of the pages with a stored document those that are `drawn` (`levada.core.hashing`), in bounded memory."""
        ...

    def live_pages(self) -> int:
        """How many pages have a stored document."""
        ...


class ChangeHints(Protocol):
    """Which pages did somebody tell of, and when are they visited then?"""

    def outdated(self, hints: Sequence[ChangeHint]) -> list[PageRecord]:
        """Those of the pages told of that have a stored document, were last met before the time told, and are not
        known to have been told of by the same source already."""
        ...

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Signals, float | None]]) -> None:
        """Note who told of a change, and visit at that time if it is before the one planned; the page's next
        visit is never put off, and a page that was visited meanwhile is left alone."""
        ...


class CommandQueue(Protocol):
    """What do people outside want of the crawl? Kept until it is obeyed; several processes may give orders."""

    def submit(self, command: ControlCommand) -> int:
        """Durable when this returns; the order's number."""
        ...

    def pending(self) -> list[tuple[int, ControlCommand]]:
        """Those not obeyed yet, with their numbers, in the order in which they were given."""
        ...

    def mark_done(self, number: int, desired_state: DesiredState) -> None:
        """All up to this one are done, and leave these wishes."""
        ...

    def desired_state(self) -> DesiredState: ...

    def close(self) -> None: ...


class Webhooks(Protocol):
    """Who wants to be told of changes, and how far is each?"""

    def hooks(self) -> list[Webhook]: ...

    def add(self, hook: Webhook) -> None: ...

    def update(self, hook: Webhook) -> bool:
        """False if it was removed meanwhile."""
        ...

    def remove(self, id: str) -> bool: ...

    def close(self) -> None: ...


class Faults(Protocol):
    """Where a test may make the disk fail or the process die; does nothing otherwise."""

    def reach(self, point: str) -> None: ...
