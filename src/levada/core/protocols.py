"""Protocols between the crawl engine and its stores, fetchers, parsers, policies and plug-ins.

Each has a contract suite, in `levada.testing` or `tests/contracts`, that every implementation runs. What else a
store offers is declared in `levada.store.base`. Stores are synchronous (a call is one durable transaction; the
engine calls them on a thread of their own), the network and the parser are asynchronous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
    PageText,
    ParsedPage,
    Plan,
    PlanSelection,
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
)
from levada.core.search_records import CountedRound, Hits, PageTerms, Posting, Query, TermGrowth, TrendQuery
from levada.core.subscriptions import DeliveryRecord, DescribedChange, Message, Subscription, TakenChanges, Waiting

if TYPE_CHECKING:
    from pathlib import Path

    from levada.core.files import ExportContext


class Clock(Protocol):
    """Time of the crawled world; see `levada.core.clock`."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class Frontier(Protocol):
    """All known URLs, and the leases to visit them."""

    def add(
        self, found: Sequence[FoundUrl], refused: Sequence[Refusal], now: float, *, found_on: int | None = None
    ) -> int:
        """Add URLs; returns how many were new. URLs over a site's page limit are refused and counted.

        Of the links of a page, `found_on` is its id: then those that were forgotten stay so.
        """
        ...

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        """Lease at most `limit` new or due pages, spread over sites, for `seconds` each.

        With `due`, pages that were visited before are leased only if they were due by then.
        """
        ...

    def lease_url(self, url: str, now: float, seconds: float, *, out_of_turn: bool = False) -> Lease | None:
        """Lease one page, whenever it is due; None if it is unknown or leased, or if its site must wait.

        The site's turn passes as with `lease`, so that the next lease stays polite. With `out_of_turn`, the site
        need not have its turn: for the process that leased its other pages, and spaces the requests itself. A
        backoff holds either way.
        """
        ...

    def planned(self, selection: PlanSelection, after: int, limit: int) -> list[PageRecord]:
        """The visited pages whose plan is selected, by id, from the one after page `after`: to walk over all."""
        ...

    def count_planned(self, selection: PlanSelection, now: float) -> int:
        """How many visited pages are selected, without those of sites in backoff at `now`."""
        ...

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        """Commit visits in one transaction; False for each whose lease is no longer the newest of its page.

        False too if it `is_original`, and another page of the site was stored with its text: its lease ends by
        itself, and the next visit finds the other page.
        """
        ...

    def originals(self, texts: Sequence[PageText]) -> list[str | None]:
        """For each text the URL of the page that is stored with it and searchable; of several the first found."""
        ...

    def near_runs(self, sites: Sequence[str]) -> dict[str, bytes]:
        """The near-duplicate runs of those sites that have some, as a visit brought them."""
        ...

    def release(self, leases: Sequence[Lease]) -> None:
        """Return leases of pages that were not visited; the pages are due as before."""
        ...

    def page(self, url: str) -> PageRecord | None: ...

    def stats(self, now: float) -> CollectionStats: ...


class Sites(Protocol):
    """The records of all sites."""

    def site(self, site: str) -> SiteRecord | None: ...

    def save(self, record: SiteRecord) -> None:
        """Store robots, delay, backoff and failures; the store itself counts pages. An admitted site stays admitted."""
        ...

    def sites(self) -> Iterator[SiteRecord]: ...


class Documents(Protocol):
    """The stored content of pages, current and earlier, and its change log."""

    def document(self, url: str, version: int | None = None) -> Document | None: ...

    def versions(self, url: str) -> list[VersionInfo]:
        """The stored versions, newest first."""
        ...

    def changes(self, after: int, limit: int) -> list[Change]:
        """The current state of the documents that changed after position `after`, in order, without raw bodies."""
        ...

    def change_log(self, after: int, limit: int) -> list[ChangeEvent]:
        """All change events after position `after`, in order. An event never changes; the newest are kept
        (`StoreLimits.keep_events`)."""
        ...

    def scan(self) -> Iterator[Document]:
        """Every current document, in bounded memory."""
        ...


class Index(Protocol):
    """An inverted index over the newest versions."""

    def apply(self, changes: Iterable[Change]) -> int:
        """Apply changes durably and idempotently, and store the `seq` of the last; returns how many there were.

        `changes` may be a stream; if it fails, none of them is applied.
        """
        ...

    def position(self) -> int:
        """The `seq` up to which the index is durable."""
        ...

    def search(self, query: Query) -> Hits: ...

    def postings(self, word: str, limit: int) -> list[Posting]: ...

    def clear(self) -> None:
        """Delete everything; the position is 0 again."""
        ...

    def close(self) -> None: ...


class Embedder(Protocol):
    """Turns texts into vectors: the smaller the angle between two, the nearer are their texts in meaning."""

    @property
    def model(self) -> str:
        """The name and version of the model. If it is another one, all vectors are computed anew."""
        ...

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        ...

    @property
    def least_similarity(self) -> float:
        """The cosine below which a page has nothing to do with a query."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each passage of a page."""
        ...

    def embed_query(self, text: str) -> Sequence[float]: ...


class Trends(Protocol):
    """Term counts: the documents that contain a term, and the changes that added it, by time."""

    def position(self) -> int:
        """The `seq` of the documents' change log up to which everything is counted."""
        ...

    def counted(self, page_ids: Sequence[int]) -> dict[int, PageTerms]:
        """The terms that were counted before of those of these pages that have any."""
        ...

    def commit(self, round: CountedRound) -> bool:
        """Add a round in one transaction; False, and nothing changes, if another process has counted meanwhile."""
        ...

    def frequency(self, term: str, language: str | None = None) -> int:
        """The number of documents that contain a folded term, in one language or all; "": of all documents."""
        ...

    def growth(self, query: TrendQuery) -> list[TermGrowth]:
        """The terms that were added often enough since then, by language and term, and the totals (term "")."""
        ...

    def tidy(self, oldest: float, rare_before: float, rare: int) -> None:
        """Delete windows that begin before `oldest`, and rare terms of each whole day (UTC) before `rare_before`:
        those that fewer than `rare` changes of that day added, per language, on all sites together."""
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
    """Decides when a page is visited again."""

    @property
    def estimates(self) -> Estimates: ...

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        """Plan the next visit. `page` is the record before this visit, and `visit` its outcome: the first visit,
        or one that compared content. `modified` is the server's date of the last change."""
        ...

    def visit_after_hint(self, page: PageRecord, said: Signals) -> float | None:
        """When to visit a page after a hint that it changed since its last visit; None: as planned."""
        ...

    def wants_full_fetch(self, page: PageRecord) -> bool:
        """Whether to fetch the page even if the server would say that it has not changed."""
        ...

    def limit_site(self, site: str, per_second: float) -> None:
        """Set the most visits per second that the site can have; infinity: no limit."""
        ...

    def set_budget(self, per_hour: float) -> None:
        """Set the fetches per hour from now on; 0: no limit."""
        ...

    def price(self) -> float:
        """What a visit must be worth now, in seconds: the lower, the sooner. 0 for a policy without a price."""
        ...


class Estimates(Protocol):
    """Estimates over all stored pages."""

    def learn(self, pages: Iterable[PageRecord], one_in: int) -> None:
        """Start from a sample of the stored pages, one in `one_in` (`PageSample`)."""
        ...

    def forget(self, page: PageRecord) -> None:
        """Remove a page that is no longer stored."""
        ...

    def share(self, now: float) -> float | None:
        """The estimated share of stored pages that are current; None while there are none."""
        ...


class PageSample(Protocol):
    """A fixed sample of the stored pages."""

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        """The pages with a stored document that are `drawn` (`levada.core.hashing`), in bounded memory."""
        ...

    def live_pages(self) -> int:
        """The number of pages with a stored document."""
        ...


class ChangeHints(Protocol):
    """Pages that a sitemap or feed says have changed."""

    def outdated(self, hints: Sequence[ChangeHint]) -> list[PageRecord]:
        """The hinted pages that have a stored document, were last fetched before the hint's time, and were not
        hinted by the same source already."""
        ...

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Signals, float | None]]) -> None:
        """Record the source of each hint, and visit at that time if it is earlier than planned. A visit is never
        delayed, and a page that was visited meanwhile is not changed."""
        ...


class CommandQueue(Protocol):
    """Control commands that wait until the crawl executes them; several processes may submit."""

    def submit(self, command: ControlCommand) -> int:
        """Add a command durably; returns its number."""
        ...

    def pending(self) -> list[tuple[int, ControlCommand]]:
        """The commands that are not executed yet, with their numbers, in order."""
        ...

    def mark_done(self, number: int, desired_state: DesiredState) -> None:
        """Record that all commands up to this one are executed, and the desired state that they leave."""
        ...

    def desired_state(self) -> DesiredState: ...

    def close(self) -> None: ...


class Subscriptions(Protocol):
    """Who is told of changes, how far each is, and the messages on their way. Each call is one transaction."""

    def subscriptions(self) -> list[Subscription]: ...

    def get(self, id: str) -> Subscription | None: ...

    def add(self, subscription: Subscription) -> None:
        """Add one; `UsageError` if the name is taken."""
        ...

    def edit(self, id: str, change: Callable[[Subscription], Subscription]) -> Subscription | None:
        """Replace a subscription by what `change` makes of it; None if it was removed."""
        ...

    def remove(self, id: str) -> bool: ...

    def take(self, id: str, taken: TakenChanges) -> bool:
        """Move the position, and let the changes wait; False if the position is no longer where it was."""
        ...

    def waiting(self, id: str) -> Waiting | None:
        """The changes that are in no message yet; None if there are none."""
        ...

    def compose(self, id: str, most: int, compose: Callable[[Sequence[DescribedChange]], Message]) -> bool:
        """Make one message of the oldest waiting changes; False if none waits."""
        ...

    def next_message(self, id: str) -> Message | None:
        """The oldest message that the target has not taken."""
        ...

    def unsent(self, id: str) -> int:
        """How many changes are in messages that the target has not taken."""
        ...

    def sent(self, message: Message, at: float) -> None: ...

    def failed(self, message: Message, trouble: str, retry_at: float) -> None: ...

    def skip(self, id: str, after: tuple[int, ...]) -> int:
        """Forget what waits, and continue from `after`; returns how many changes are not told."""
        ...

    def log(self, limit: int, id: str = "") -> list[DeliveryRecord]:
        """The newest messages first, sent or not."""
        ...

    def close(self) -> None: ...


class Faults(Protocol):
    """Points at which a test can make the disk fail or the process die."""

    def reach(self, point: str) -> None: ...
