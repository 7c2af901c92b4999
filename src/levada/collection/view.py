"""A collection as a server sees it: opened on first use, and again when it has changed.

The server may be there before the first crawl is, and outlive many.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Protocol, TypeVar

from levada.collection.addresses import known_page
from levada.core.clock import SystemClock
from levada.core.folder import DataFolder
from levada.store.reading import OpenedCollection, open_collection

if TYPE_CHECKING:
    from levada.capture.query_log import SearchCapture
    from levada.collection.changes import ChangeFeed
    from levada.collection.commands import Receipt
    from levada.collection.live import LiveStatus
    from levada.collection.warm_map import WarmPages
    from levada.core.commands import ControlCommand, DesiredState
    from levada.core.protocols import Index, Webhooks
    from levada.store.sql.reading import PageSummaries
from levada.store.summaries import PageSummary

_LOOKED = 0.1  # seconds
_MOST_CAPTURED = 10_000_000  # bytes in a file; older ones are left beside it


class _Closable(Protocol):
    def close(self) -> None: ...


_Part = TypeVar("_Part", bound=_Closable)


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
        state = self._current()
        if state.collection is None:
            with self._lock:
                if state.collection is None:
                    state.collection = state.stack.enter_context(open_collection(self.folder))
        return state.collection

    def index(self) -> Index:
        """The search index, as far as the indexer beside the crawl has come."""
        state = self._current()
        if state.index is None:
            from levada.collection.search import open_search

            with self._lock:
                if state.index is None:
                    _, state.index = state.stack.enter_context(open_search(self.folder))
        return state.index

    def hooks(self, create: bool = False) -> Webhooks:
        """The webhooks; none while nobody added one."""
        from levada.store.hooks import MemoryWebhooks, SqliteWebhooks

        state = self._current()
        if state.hooks is None:
            if not create and not self.folder.hooks.exists():
                return MemoryWebhooks()
            self.folder.must_exist()
        return self._part(state, "hooks", lambda: SqliteWebhooks(self.folder.hooks))

    def capture(self) -> SearchCapture | None:
        """The log of queries; None unless they are captured."""
        if not self.capturing:
            return None
        from levada.capture.query_log import SearchCapture

        return self._part(self._current(), "capture", lambda: SearchCapture(self.folder.queries, rotate=_MOST_CAPTURED))

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
        state = self._current()
        if state.warm is not None:
            return state.warm
        from levada.collection.warm_map import WarmPages

        return self._part(state, "warm", lambda: WarmPages(self.folder, self.clock))

    def _summary(self, url: str) -> PageSummary | None:
        """By one question, where all pages lie in one shard; for the thread of the server's loop."""
        state = self._current()
        if state.page_summaries is None and self.folder.database.exists():
            from levada.bulk.sources.collection import open_page_summaries, page_summary_names

            names = page_summary_names(self.folder)
            if len(names) == 1:
                self._part(state, "page_summaries", lambda: open_page_summaries(self.folder, names[0]))
        if state.page_summaries is None:
            return None
        return next((found for _, found in state.page_summaries.summaries(url, f"{url}\0", 1, None)), None)

    def _part(self, state: _Opened, name: str, make: Callable[[], _Part]) -> _Part:
        if getattr(state, name) is None:
            with self._lock:
                if getattr(state, name) is None:
                    made = make()
                    state.stack.callback(made.close)
                    setattr(state, name, made)
        part: _Part = getattr(state, name)
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
        from levada.collection.commands import submit_command

        return submit_command(self.folder, command)

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
        self.collection: OpenedCollection | None = None
        self.index: Index | None = None
        self.hooks: Webhooks | None = None
        self.warm: WarmPages | None = None
        self.page_summaries: PageSummaries | None = None
        self.capture: SearchCapture | None = None
