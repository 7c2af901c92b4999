"""Search over a collection; the index is caught up first if a crawl was killed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from levada.core.errors import BodiesAway, IndexOutdated, StoreDamaged, StoreError, StoreLocked
from levada.core.folder import DataFolder
from levada.core.plugins import is_builtin
from levada.core.protocols import Index
from levada.follow.index import catch_up_store, catch_up_vectors, clear_if_ahead, open_index, open_writer, spans_shards
from levada.search.hits import PageFacts
from levada.search.hybrid.embedding import open_embedder
from levada.search.hybrid.fusion import Near
from levada.search.synonyms import Synonyms, read_synonyms
from levada.store.bodies.opening import held_place
from levada.store.opening import open_shard_reader, plan_of, reachable_folders, shard_folders, unreachable
from levada.store.reading import OpenedCollection, open_collection

if TYPE_CHECKING:
    from levada.search.sharded import Counted
    from levada.store.base import Store


log = logging.getLogger(__name__)

_TEXTS_AT_ONCE = 10

OnProgress = Callable[[str, int, int], None]
"""Called with what is done, how much of it, and how much there is."""


def no_progress(what: str, done: int, total: int) -> None:
    """Show nothing."""


@contextmanager
def open_search(folder: DataFolder, opened: OpenedCollection | None = None) -> Iterator[tuple[OpenedCollection, Index]]:
    """The stored pages and their index, ready to be searched; snippets come from the stored text.

    Whoever has the collection open already gives it, and closes it later.
    """
    with nullcontext(opened) if opened else open_collection(folder) as collection:
        _catch_up_if_alone(collection)
        with ExitStack() as stack:
            index = _opened(collection, stack)
            stack.callback(index.close)
            yield collection, index


def _opened(collection: OpenedCollection, opened: ExitStack) -> Index:
    engine, folder = collection.settings.index.engine, collection.folder
    given: dict[str, Any] = {"text_of": _text_of(collection)}
    if is_builtin("levada.indexes", engine):
        given |= {"page_facts": _page_facts(collection), "expect": _expect(collection)}
    if spans_shards(engine):
        return open_index(shard_folders(folder)[0], engine, lambda: collection.settings, **given)
    plan = plan_of(folder)
    if plan is None:
        if is_builtin("levada.indexes", engine):
            given["near"] = _near(collection, [folder], opened)
        return open_index(folder, engine, lambda: collection.settings, **given)
    from levada.search.sharded import ShardedIndex
    from levada.search.tantivy.reader import TantivyShard

    opened.callback(plan.close)
    shards = shard_folders(collection.folder)
    indexes = [TantivyShard(shard.index) for shard in shards]
    counted = None if unreachable(collection.store) else _counts(shards, opened)
    return ShardedIndex(
        indexes,
        plan,
        text_of=_text_of(collection),
        page_facts=_page_facts(collection),
        counted=counted,
        near=_near(collection, shards, opened),
        expect=_expect(collection),
    )


def _near(collection: OpenedCollection, shards: Sequence[DataFolder], opened: ExitStack) -> Near | None:
    """Finds the pages near a text in meaning; None unless search is hybrid."""
    embedder = open_embedder(collection.settings)
    if embedder is None:
        return None
    from levada.search.hybrid.vectors import VectorReader

    return opened.enter_context(closing(VectorReader([shard.index for shard in shards], embedder))).near


def _counts(shards: Sequence[DataFolder], opened: ExitStack) -> Counted | None:
    """How often words stand in each shard's documents, if all are counted up to date."""
    from levada.search.term_counts.sqlite import SqliteTrends

    every = []
    for shard in shards:
        if not shard.trends.exists():
            return None
        try:
            trends = opened.enter_context(closing(SqliteTrends(shard.trends, read_only=True)))
            with closing(open_shard_reader(shard)) as store:
                if trends.position() < store.newest_seq():
                    return None
        except StoreError:
            return None
        every.append(trends)
    return lambda place, word: every[place].frequency(word)


def build_index(folder: DataFolder, on_progress: OnProgress = no_progress) -> None:
    """Make everything that is stored searchable now, and not with the first search or crawl."""
    with open_collection(folder) as collection, folder.locked():
        _catch_up(collection, on_progress)


def _catch_up(collection: OpenedCollection, on_progress: OnProgress = no_progress) -> None:
    how = collection.settings.index
    embedder = open_embedder(collection.settings)
    for shard in reachable_folders(collection.folder, collection.store):
        with (
            closing(open_shard_reader(shard)) as store,
            closing(open_writer(shard, how.heap, how.engine, lambda: collection.settings)) as index,
        ):
            _say_if_rebuilt(index, store)
            catch_up_store(
                store, index, how.batch, shard.index / "applied", partial(_tell, on_progress, store.newest_seq())
            )
            catch_up_vectors(shard, store, embedder, how.batch)


def _say_if_rebuilt(index: Index, store: Store) -> None:
    try:
        clear_if_ahead(index, store)
    except StoreDamaged as error:
        if isinstance(error, IndexOutdated):  # it takes a while, and nothing is wrong
            log.warning("%s, which is done now", error)


def _tell(on_progress: OnProgress, newest: int, seq: int) -> None:
    on_progress("indexing", min(seq, newest), newest)


def _catch_up_if_alone(collection: OpenedCollection) -> None:
    """A running crawl keeps its index current by itself, a little behind the documents."""
    try:
        with collection.folder.locked():
            _catch_up(collection)
    except StoreError as error:
        # Somebody else's collection may be read as it is, and what was indexed before a place was lost can be found.
        if not isinstance(error, StoreLocked | BodiesAway) and os.access(collection.folder.path, os.W_OK):
            raise


def _page_facts(collection: OpenedCollection) -> Callable[[str], PageFacts | None]:
    def facts(url: str) -> PageFacts | None:
        try:
            page = collection.store.page(url)
        except StoreError:
            if unreachable(collection.store):
                return None
            raise
        if page is None:
            return None
        return PageFacts(page.history[-1].at if page.history else 0.0, page.sketch or b"")

    return facts


class SynonymFile:
    """The synonyms of a collection, read again when the settings or the file have changed."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._seen: tuple[object, ...] = ()
        self._synonyms: Synonyms = {}

    def synonyms(self) -> Synonyms:
        """What `search.synonyms` names, relative to the data folder; `SettingsError` if it cannot be read."""
        mark = self._folder.settings_mark()
        if not self._seen or self._seen[0] != mark:
            named = self._folder.settings().search.synonyms
            self._path = self._folder.path / Path(named).expanduser() if named else None
        seen = (mark, self._path and _changed(self._path))
        if seen != self._seen:
            self._synonyms = read_synonyms(self._path) if self._path else {}
            self._seen = seen
        return self._synonyms


def _changed(path: Path) -> tuple[int, int, int]:
    """Another value whenever the file is another one."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size


def _expect(collection: OpenedCollection) -> Callable[[Sequence[str]], None] | None:
    """Reads texts that lie in object storage at the same time, so that they are in memory when they are asked for."""
    if held_place(collection.folder) is None:
        return None
    text = _text_of(collection)

    def expect(urls: Sequence[str]) -> None:
        with ThreadPoolExecutor(min(_TEXTS_AT_ONCE, len(urls)), thread_name_prefix="texts") as pool:
            for _ in pool.map(text, urls):
                pass

    return expect


def _text_of(collection: OpenedCollection) -> Callable[[str], str]:
    def text(url: str) -> str:
        try:
            document = collection.store.document(url)
        except BodiesAway:
            return ""  # a hit without an excerpt is better than none
        except StoreError:
            if unreachable(collection.store):
                return ""
            raise
        return document.text if document else ""

    return text
