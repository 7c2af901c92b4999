"""A collection as a server sees it: opened on first use, and again when it has changed.

The server may be there before the first crawl is, and outlive many.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from levada.collection.addresses import known_page
from levada.core.clock import SystemClock
from levada.core.errors import TooMany
from levada.core.folder import DataFolder
from levada.store.base import ShardAway
from levada.store.opening import shard_places
from levada.store.reading import OpenedCollection, open_collection
from levada.store.summaries import PageSummary

if TYPE_CHECKING:
    from levada.capture.query_log import SearchCapture
    from levada.collection.changes import ChangeFeed
    from levada.collection.commands import Receipt
    from levada.collection.live import LiveStatus
    from levada.collection.warm_map import WarmPages
    from levada.core.commands import ControlCommand, DesiredState
    from levada.core.protocols import Index, Subscriptions
    from levada.core.search_records import Hits, Query

_LOOKED = 0.1  # seconds
_MOST_CAPTURED = 10_000_000  # bytes in a file; older ones are left beside it
_MOST_WAITING = 1_000  # commands that no crawl has carried out yet
_Part = TypeVar("_Part")


class CollectionView:
    """The pages, index, warm map, webhooks and captured queries of one folder. Threads may share it."""

    def __init__(self, path: Path, *, capturing: bool = False, look: float = _LOOKED) -> None:
        self.folder = DataFolder(path)
        self.capturing = capturing
        self.clock = SystemClock()
        self._lock = RLock()
        self._state = _Opened(())
        self._before = _Opened(())
        self._look = look  # seconds between two looks at whether the folder is still the same
        self._look_at = 0.0

    def collection(self) -> OpenedCollection:
        """The stored pages; `NotFound` while there are none."""
        return self._part("collection", lambda: open_collection(self.folder))

    def collection_now(self) -> OpenedCollection:
        """The stored pages, with the settings that the collection keeps now."""
        return replace(self.collection(), settings=self.folder.settings())

    def away(self) -> list[ShardAway]:
        """The shards that did not answer when they were asked last. Nobody is asked for this."""
        known = self._state.parts.get("collection")
        return list(known.store.away.values()) if known is not None else []

    def is_on_servers(self) -> bool:
        """Whether an answer may have to wait for a server."""

        def looked() -> AbstractContextManager[bool]:
            return nullcontext(any(place.server for place in shard_places(self.folder)))

        return self.folder.placement.exists() and self._part("on_servers", looked)

    def index(self) -> Index:
        """The search index, as far as the indexer beside the crawl has come."""

        collection = self.collection()

        def opened() -> AbstractContextManager[tuple[OpenedCollection, Index]]:
            from levada.collection.search import open_search

            return open_search(self.folder, collection)

        return self._part("search", opened)[1]

    def search(self, query: Query) -> Hits:
        """The answer to a search, with the synonyms that the settings name."""
        from levada.collection.search import SynonymFile

        synonyms = self._part("synonyms", lambda: nullcontext(SynonymFile(self.folder))).synonyms()
        return self.index().search(replace(query, synonyms=synonyms) if synonyms else query)

    def subscriptions(self, create: bool = False) -> Subscriptions:
        """Who is told of changes; nobody while none was added."""
        from levada.store.subscriptions import MemorySubscriptions, SqliteSubscriptions

        if create:
            self.folder.must_be_home("notifications are made")
        if "subscriptions" not in self._current().parts:
            if not create and not self.folder.hooks.exists():
                return MemorySubscriptions()
            self.folder.must_exist()
        return self._part("subscriptions", lambda: closing(SqliteSubscriptions(self.folder.hooks)))

    def capture(self) -> SearchCapture | None:
        """The log of queries; None unless they are captured."""
        if not self.capturing:
            return None
        from levada.capture.query_log import SearchCapture

        return self._part("capture", lambda: closing(SearchCapture(self.folder.queries, rotate=_MOST_CAPTURED)))

    def page_summary(self, addresses: list[str]) -> tuple[str, PageSummary]:
        """What is shown of the page at one of these addresses, with the address at which it is known.

        From the warm map if its copy is current, else from the store.
        """
        url = addresses[0]
        summary = self._warm().summary(url) or self._summary(url)
        if summary is not None:
            return url, summary
        from levada.store.summaries import summary_of

        collection = self.collection()
        page = known_page(collection, addresses)
        newest = next(iter(collection.store.versions(page.url)), None) if page.version else None
        about = (newest.title, newest.words, newest.fetched_at) if newest else (None, None, None)
        return page.url, summary_of(page, *about)

    def _warm(self) -> WarmPages:
        def opened() -> closing[WarmPages]:
            from levada.collection.warm_map import WarmPages

            return closing(WarmPages(self.folder, self.clock))

        return self._part("warm", opened)

    def _summary(self, url: str) -> PageSummary | None:
        """By one question, where all pages lie in one shard; for the thread of the server's loop."""
        parts = self._current().parts
        if "page_summaries" not in parts and self.folder.database.exists():
            from levada.bulk.sources.collection import open_page_summaries, page_summary_names

            names = page_summary_names(self.folder)
            if len(names) == 1:
                self._part("page_summaries", lambda: closing(open_page_summaries(self.folder, names[0])))
        if "page_summaries" not in parts:
            return None
        return next((found for _, found in parts["page_summaries"].summaries(url, f"{url}\0", 1, None)), None)

    def _part(self, name: str, opened: Callable[[], AbstractContextManager[_Part]]) -> _Part:
        state = self._current()
        if name not in state.parts:
            with self._lock:
                if name not in state.parts:
                    state.parts[name] = state.stack.enter_context(opened())
        part: _Part = state.parts[name]
        return part

    def _current(self) -> _Opened:
        """What is open, anew if another crawl has begun since: with other settings, or in a folder made anew."""
        now = self.clock.monotonic()
        if now < self._look_at:
            return self._state
        self._look_at = now + self._look
        identity = self.folder.identity()
        if self._state.identity != identity:
            with self._lock:
                if self._state.identity != identity:
                    self._before.stack.close()  # what was open last may still be in use by a slow answer
                    self._before, self._state = self._state, _Opened(identity)
        return self._state

    def submit(self, command: ControlCommand) -> Receipt:
        """Keep a control command for the crawl that runs, or for the next one."""
        from levada.collection.commands import Receipt, open_commands

        self.folder.must_exist()
        with closing(open_commands(self.folder)) as commands:
            waiting = len(commands.pending())
            if waiting >= _MOST_WAITING:
                raise TooMany(f"{waiting} commands wait already: start a crawl that carries them out")
            return Receipt(commands.submit(command), waiting + 1, self.live() is not None)

    def desired_state(self) -> DesiredState:
        """What the control commands ask of the crawl."""
        from levada.collection.commands import open_commands

        with closing(open_commands(self.folder)) as commands:
            return commands.desired_state()

    def live(self) -> LiveStatus | None:
        """The state of the crawl that runs in the folder; None if there is none."""
        from levada.collection.live import read_live

        return read_live(self.folder.live_file)

    def changes(self) -> ChangeFeed:
        """The changes of the stored pages."""
        from levada.collection.changes import ChangeFeed

        return ChangeFeed(self.collection().store.logs)

    def close(self) -> None:
        with self._lock:
            for state in (self._before, self._state):
                state.stack.close()
            self._before = self._state = _Opened(())
            self._look_at = 0.0


class _Opened:
    """Everything that is open of one state of the folder."""

    def __init__(self, identity: tuple[int, ...]) -> None:
        self.identity = identity
        self.stack = ExitStack()
        self.parts: dict[str, Any] = {}
