"""Reading a collection: pages, search, changes, rows and statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from os import PathLike
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

from msgspec.structs import replace

from levada.collection.addresses import known_page, spellings
from levada.core.errors import NotFound, UsageError
from levada.core.folder import DataFolder
from levada.core.records import (
    ChangeEvent,
    ChangeFacts,
    ChangeSelection,
    CollectionStats,
    Document,
    SiteRecord,
    VersionInfo,
)
from levada.core.structured import PricePoint, StructuredData, price_series
from levada.store.reading import OpenedCollection

if TYPE_CHECKING:
    from levada.collection.changes import ChangesPage
    from levada.collection.diff import Diff
    from levada.collection.explain import Forecast, Why
    from levada.collection.exports import ExportReport
    from levada.collection.live import LiveStatus
    from levada.collection.view import CollectionView
    from levada.core.search_records import Hits, Posting, Trend
    from levada.export.rows import ExportRow
    from levada.follow.feed import Feed

Since = str | float | datetime | None
"""`"7d"`, `"24h"`, `"2026-01-31"`, epoch seconds or a date; None: from the beginning."""

_AT_ONCE = 500  # changes
_POLL = 0.5  # seconds between two looks at the change log


class CollectionReader:
    """Read access to the collection in a folder, also while another process crawls there."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._closed = False
        self._opened: CollectionView | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"levada.{type(self).__name__}({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """The folder.

        >>> str(news.path)
        'news'
        """
        return self._folder.path

    def close(self) -> None:
        """Close the collection. Every later call raises `UsageError`; closing twice is harmless.

        >>> news.close()
        """
        self._closed = True
        if self._opened is not None:
            self._opened.close()

    # Pages

    def page(self, url: str, version: int | None = None) -> Document:
        """The stored page, or an earlier version of it; `NotFound` says why there is none.

        >>> news.page(start).title != ""
        True
        """
        from levada.collection.diff import nothing_stored

        store = self._reader().store
        page = known_page(self._reader(), spellings(url))
        document = store.document(page.url, version)
        if document is not None:
            return document
        if not page.version:
            raise NotFound(nothing_stored(page))
        kept = ", ".join(str(each.version) for each in store.versions(page.url))
        raise NotFound(f"no version {version} of {page.url} is kept: {kept}")

    def markdown(self, url: str, version: int | None = None) -> str:
        """The main content of a stored page as Markdown: headings, lists, tables, code, links.

        The stored body is read in a child process with limits (`parse.memory`, `parse.cpu_seconds`). Of a page that is
        no HTML, or that does not fit into the limits, it is the main text.

        >>> news.markdown(start).startswith("#")
        True
        """
        from levada.collection.exports import as_markdown

        return as_markdown(self._reader(), self.page(url, version))

    def data(self, url: str, version: int | None = None) -> StructuredData:
        """What a stored page says in JSON-LD, microdata, RDFa and meta elements: items, offers, and notes on what could
        not be read.

        >>> news.data(start).notes
        ()
        """
        return self.page(url, version).data

    def prices(self, url: str) -> list[PricePoint]:
        """The main offer of a page over time, from all versions that are kept, the oldest first. A point stands for a
        change of price, currency or availability.

        >>> news.prices(start)
        []
        """
        return price_series((each.version, each.fetched_at, each.data) for each in reversed(self.versions(url)))

    def versions(self, url: str) -> list[VersionInfo]:
        """The stored versions of a page, newest first.

        >>> [each.version for each in news.versions(start)]
        [1]
        """
        reader = self._reader()
        return reader.store.versions(known_page(reader, spellings(url)).url)

    def diff(self, url: str, old: int | None = None, new: int | None = None, *, context: int = 3) -> Diff:
        """What changed on a page between two versions, by default at the last change.

        >>> print(news.diff(start))
        <BLANKLINE>
        """
        from levada.collection.diff import diff_of

        reader = self._reader()
        return diff_of(reader.store, known_page(reader, spellings(url)), old, new, context)

    def why(self, url: str) -> Why:
        """When a page is visited next, and why.

        >>> news.why(start).page.visits > 0
        True
        """
        from levada.collection.explain import why

        reader = self._reader()
        return why(reader, known_page(reader, spellings(url)))

    def forecast(self) -> Forecast:
        """How fresh the pages would be with more or fewer fetches.

        >>> 0 < news.forecast().present.fresh <= 1
        True
        """
        from levada.collection.explain import forecast

        return forecast(self._reader())

    # Search and changes

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        offset: int = 0,
        as_you_type: bool = False,
        sort: str = "relevance",
        facets: str = "",
        one_per: str = "",
    ) -> Hits:
        """Search the stored pages: words, "phrases", word*, AND, OR, (a b) OR c, -word, title:, site:, price:<9. The
        best hit comes first; pages with some of the words follow if few have all.
        With `as_you_type`, the last word may be half typed.

        `sort` is "relevance", "changed" or "checked": the last changed or the last visited page first. `facets`
        counts the matching pages ("site,language,type,time", or "all"). With `one_per`, one hit stands for all of a
        "site", or for all "copies" of a text.

        >>> for hit in news.search("termos", limit=1):
        ...     print(hit.title)
        Trendyol: Geniş termos arayanlara 14 seçenek
        """
        from levada.core.search_records import search_query

        now = self._reader().clock.now()
        return self._view().search(
            search_query(
                query,
                limit=limit,
                offset=offset,
                now=now,
                as_you_type=as_you_type,
                sort=sort,
                facets=facets,
                one_per=one_per,
            )
        )

    def changes(
        self, since: Since = None, *, site: str = "", words: str = "", least: float = 0.0, kinds: str = ""
    ) -> Iterator[ChangeEvent]:
        """The changes of stored pages since then, oldest first: new, changed, gone, back.

        `site` selects a host and the hosts below it, `words` selects pages that contain all of them, `least`
        selects changes of at least this share of a page's words, and `kinds` those named (`"new,changed"`). What
        came and went says `facts`.

        >>> {change.what.value for change in news.changes(since="1d")} <= {"new", "changed"}
        True
        """
        from levada.follow.feed import filter_of

        wanted = filter_of(site, words, least, kinds)
        feed, at = self.feed(), self._moment(since)
        place = feed.start() if at is None else feed.place_at(at)
        return (change for change in self._read_on(place, wanted) if at is None or change.at >= at)

    def follow(
        self,
        after: tuple[int, ...] | None = None,
        *,
        site: str = "",
        words: str = "",
        least: float = 0.0,
        kinds: str = "",
    ) -> Iterator[ChangeEvent]:
        """Every change from now on as it comes, without an end; or from a position of `feed` on.

        >>> next(news.follow(after=(0,))).what.value
        'new'
        """
        from levada.follow.feed import filter_of

        place = self.feed().newest() if after is None else after
        return self._read_on(place, filter_of(site, words, least, kinds), wait=_POLL)

    def _read_on(self, place: tuple[int, ...], wanted: ChangeSelection, wait: float = 0.0) -> Iterator[ChangeEvent]:
        pause, more = Event(), True
        while more or wait:
            page = self.feed().read(place, _AT_ONCE, wanted)  # opened anew: another crawl may have begun
            place, more = page.after, page.more
            for shard, change in page.changes:
                yield replace(change, shard=shard)
            if not more:
                pause.wait(wait)

    def read_changes(
        self,
        after: str = "",
        *,
        since: Since = None,
        limit: int = 100,
        site: str = "",
        words: str = "",
        kinds: str = "",
    ) -> ChangesPage:
        """At most `limit` changes after a marker, or since a time, and the marker at which to read on.

        >>> page = news.read_changes(limit=2)
        >>> news.read_changes(page.next, limit=2).changes != page.changes
        True
        """
        from levada.collection.changes import ChangeFeed, change_filter

        feed, at = ChangeFeed(self._reader().store.logs), self._moment(since)
        if at is not None and not after:
            after = ".".join(map(str, feed.log.place_at(at)))
        return feed.read(after, limit, change_filter(site, words, kinds=kinds))

    def facts(self, change: ChangeEvent, *, diff: bool = True) -> ChangeFacts:
        """What came and went with a change, in short: counts, lines, and a link. See `diff` for all of it.

        Without `diff` no text is read, and only the log says what happened.

        >>> news.facts(next(news.changes())).diff.startswith("+")
        True
        """
        from levada.collection.change_facts import facts_of_changes

        reader = self._reader()
        return facts_of_changes(reader.store, [change], reader.settings.notify.dashboard, diffs=diff)[0]

    def feed(self) -> Feed:
        """The change log by position: continue where you stopped, and get each change exactly once.

        >>> feed = news.feed()
        >>> feed.read(feed.newest(), limit=10).changes
        []
        """
        from levada.follow.feed import Feed

        return Feed(self._reader().store.logs)

    def postings(self, word: str, *, limit: int = 1_000) -> list[Posting]:
        """The pages that contain a word, and how often.

        >>> all(posting.count > 0 for posting in news.postings("a", limit=3))
        True
        """
        return self._view().index().postings(word, limit)

    def unreachable(self) -> list[str]:
        """Messages about shards that cannot be reached; results are then incomplete.

        >>> news.unreachable()
        []
        """
        return [str(away) for away in self._reader().store.away.values()]

    def now(self) -> float:
        """The time by the collection's clock, in epoch seconds.

        >>> news.now() > 0
        True
        """
        return self._reader().clock.now()

    def trends(self, window: str = "24h", *, site: str = "", language: str = "", limit: int = 10) -> list[Trend]:
        """The terms that were added to pages more often than before.

        >>> len(news.trends("24h", limit=5)) <= 5
        True
        """
        from levada.collection.trends import find_trends

        self._must_be_open()
        return find_trends(self.path, window=window, site=site, language=language, limit=limit).trends

    # Rows

    def rows(self, *, site: str = "", since: Since = None) -> Iterator[ExportRow]:
        """Every stored page as a row of text and facts, in bounded memory.

        >>> next(news.rows()).url.startswith("http")
        True
        """
        from levada.collection.exports import stored_pages
        from levada.export.rows import row_of

        return map(row_of, stored_pages(self._reader(), site, self._moment(since)))

    def export(
        self,
        path: str | PathLike[str],
        format: str | None = None,
        *,
        site: str = "",
        since: Since = None,
        force: bool = False,
        stdout: BinaryIO | None = None,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> ExportReport:
        """Write the stored pages to a file, in the format of its suffix or `format`: jsonl, markdown (a folder unless
        it ends in .md), jsonl-markdown, parquet, warc, xml (a folder), or that of a plug-in.

        `stdout` is written to instead of a new file; `on_progress` is told how many pages were read, and of how many.

        >>> news.export("pages.jsonl", force=True).format
        'jsonl'
        """
        from levada.collection.exports import export_pages, format_named
        from levada.store.moving_lock import nobody_moves_anywhere

        target = Path(path)
        form, at = format_named(target, format), self._moment(since)
        with nobody_moves_anywhere(self._folder) as check:
            report = export_pages(
                self._reader(), form, target, site, at, force=force, stdout=stdout, on_progress=on_progress
            )
            check()
        return report

    # The whole collection

    def stats(self) -> CollectionStats:
        """The statistics of the whole collection.

        >>> news.stats().sites > 0
        True
        """
        reader = self._reader()
        return reader.store.stats(reader.clock.now())

    def sites(self) -> Iterator[SiteRecord]:
        """The record of each site.

        >>> all(site.pages >= 0 for site in news.sites())
        True
        """
        return self._reader().store.sites()

    def live(self) -> LiveStatus | None:
        """The live status of the crawl that runs in the folder, in this process or another; None if none runs.

        >>> news.live() is None
        True
        """
        return self._view().live()

    # What is open

    def _must_be_open(self) -> None:
        if self._closed:
            raise UsageError(f"the collection in {self.path} is closed: open it again with levada.open()")

    def _moment(self, since: Since) -> float | None:
        if since is None or isinstance(since, float | int):
            return since
        if isinstance(since, datetime):
            return since.timestamp()
        from levada.search.query import since_moment

        return since_moment(since, self._reader().clock.now())

    def _view(self) -> CollectionView:
        self._must_be_open()
        if self._opened is None:
            from levada.collection.view import CollectionView

            self._opened = CollectionView(self.path, look=0.0)
        return self._opened

    def _reader(self) -> OpenedCollection:
        return self._view().collection()
