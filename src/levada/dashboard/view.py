"""What does the server look at? An open collection, its index and counts, and what the crawl beside it says.

Everything is opened when it is first asked for, and again after it failed: the server may be there before the
first crawl is, and outlive many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock, RLock
from typing import Any, TypeVar

from levada.adapters.memory_hooks import MemoryHooks
from levada.adapters.page_cards import CardShelf
from levada.adapters.search_capture import SearchCapture
from levada.adapters.sqlite_hooks import SqliteHooks
from levada.assemble.folder import DataFolder
from levada.assemble.known_loads import LoadWatch
from levada.assemble.ordering import open_orders
from levada.assemble.reading import Collection, open_collection
from levada.assemble.searching import open_search
from levada.assemble.warm_pages import WarmPages
from levada.assemble.warming import MAPS, maps_of, open_shelf, shelf_names
from levada.clock import SystemClock
from levada.dashboard.lab_runs import Laboratory
from levada.flow.feed import Feed, Place
from levada.ports import Hooks, Index, Orders
from levada.records import ChangeFilter, Happening

__all__ = ["View"]

Told = TypeVar("Told")

_LOOKED = 0.1  # seconds between two looks at whether the folder is still the same
_LOOKED_BACK = 200  # steps of each shard's log, at first
_MOST_LOOKED_BACK = 20_000
_MOST_CAPTURED = 10_000_000  # bytes in a file; older ones are left beside it


class View:
    """Threads may share it."""

    def __init__(
        self, folder: DataFolder, laboratory: Laboratory | None = None, *, capturing: bool = False
    ) -> None:
        self.folder = folder
        self.capturing = capturing
        self._lock = RLock()
        self._asking: dict[str, Lock] = {}
        self._clock = SystemClock()
        self.loads = LoadWatch((maps_of(folder), MAPS), self._clock)
        self.laboratory = laboratory or Laboratory(folder.path / "lab")
        self._remembered: dict[str, tuple[float, Any]] = {}
        self._state = _Opened(())
        self._before = _Opened(())
        self._look_at = 0.0  # when the folder is looked at again

    def collection(self) -> Collection:
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
            with self._lock:
                if state.index is None:
                    _, state.index = state.stack.enter_context(open_search(self.folder))
        return state.index

    def hooks(self, create: bool = False) -> Hooks:
        """Who is told of changes; nobody, while nobody asked for it."""
        state = self._current()
        if state.hooks is None:
            if not create and not self.folder.hooks.exists():
                return MemoryHooks()
            with self._lock:
                if state.hooks is None:
                    self.folder.must_exist()
                    state.hooks = SqliteHooks(self.folder.hooks)
                    state.stack.callback(state.hooks.close)
        return state.hooks

    def capture(self) -> SearchCapture | None:
        """Where what is asked is written down; nowhere unless that is wanted."""
        if not self.capturing:
            return None
        state = self._current()
        if state.capture is None:
            with self._lock:
                if state.capture is None:
                    state.capture = SearchCapture(self.folder.queries, rotate=_MOST_CAPTURED)
                    state.stack.callback(state.capture.close)
        return state.capture

    def warm(self) -> WarmPages:
        """Cards of pages, from the map that `levada warm` filled; none while there is no map."""
        state = self._current()
        if state.warm is None:
            with self._lock:
                if state.warm is None:
                    state.warm = WarmPages(self.folder, self._clock)
                    state.stack.callback(state.warm.close)
        return state.warm

    def shelf(self) -> CardShelf | None:
        """Cards of pages by one question, where all lie in one shard; for the thread of the server's loop."""
        state = self._current()
        if state.shelf is None and self.folder.database.exists():
            names = shelf_names(self.folder)
            if len(names) == 1:
                state.shelf = open_shelf(self.folder, names[0])
                state.stack.callback(state.shelf.close)
        return state.shelf

    def _current(self) -> _Opened:
        """What is open, anew if another crawl has begun since: with other settings, or in a folder made anew."""
        now = self._clock.monotonic()
        if now < self._look_at:
            return self._state
        self._look_at = now + _LOOKED
        identity = self.folder.identity()
        if self._state.identity != identity:
            with self._lock:
                if self._state.identity != identity:
                    self._before.stack.close()  # what was open last may still be in use by a slow answer
                    self._before, self._state = self._state, _Opened(identity)
        return self._state

    @contextmanager
    def orders(self) -> Iterator[Orders]:
        """Where the crawl looks for what it is asked."""
        orders = open_orders(self.folder)
        try:
            yield orders
        finally:
            orders.close()

    def is_crawling(self) -> bool:
        return self.folder.live() is not None

    def remembered(self, name: str, seconds: float, ask: Callable[[], Told]) -> Told:
        """What was answered before, if that is not too long ago; one asks for the same at a time."""
        with self._lock:
            asking = self._asking.setdefault(name, Lock())
        with asking:
            now = self._clock.monotonic()
            at, told = self._remembered.get(name, (0.0, None))
            if told is None or now - at > seconds:
                told = ask()
                self._remembered[name] = (now, told)
        answer: Told = told
        return answer

    def feed(self) -> Feed:
        """What happened to the documents, shard by shard."""
        store = self.collection().store
        return Feed(getattr(store, "logs", None) or [store])

    def latest_changes(self, wanted: ChangeFilter, limit: int) -> list[tuple[int, Happening]]:
        """The newest first."""
        feed = self.feed()
        back, found = _LOOKED_BACK, list[tuple[int, Happening]]()
        newest = feed.newest()
        while len(found) < limit and back <= _MOST_LOOKED_BACK:
            place = tuple(max(0, step - back) for step in newest)
            found = list(_all(feed, place, wanted))
            if not any(place):
                break
            back *= 8
        return sorted(found, key=lambda each: each[1].at, reverse=True)[:limit]

    def close(self) -> None:
        self.laboratory.close()
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
        self.collection: Collection | None = None
        self.index: Index | None = None
        self.hooks: Hooks | None = None
        self.warm: WarmPages | None = None
        self.shelf: CardShelf | None = None
        self.capture: SearchCapture | None = None


def _all(feed: Feed, place: Place, wanted: ChangeFilter) -> Iterator[tuple[int, Happening]]:
    more = True
    while more:
        page = feed.read(place, 1000, wanted)
        place, more = page.after, page.more
        yield from page.changes
