"""Index follower: brings the search index up to the change log, in a process beside the crawl.

The documents decide. The index stores its own position, so catching up after a crash, a rebuild and the ordinary
step are the same loop. An index that cannot be read is built again from the documents.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from levada.core.errors import IndexAway, StoreDamaged, StoreLocked
from levada.core.folder import DataFolder
from levada.core.plugins import is_builtin, load, translating
from levada.core.protocols import Documents, Embedder, Index
from levada.core.records import Change
from levada.follow.epochs import AppliedChanges
from levada.follow.process import Follower, begin_following, follow, run_child
from levada.search.hybrid.embedding import open_embedder
from levada.store.base import Capability, Store
from levada.store.opening import collection_folder, make_collection_name, open_shard_reader, shard_folders

if TYPE_CHECKING:
    from levada.core.settings import IndexSettings, Settings


_READ_TOGETHER = 32  # documents: a commit may have thousands, and some of them may be long


class FollowsChanges(Protocol):
    """What is kept up to date with the documents: an index, or the vectors beside it."""

    def apply(self, changes: Iterable[Change]) -> int: ...
    def position(self) -> int: ...
    def clear(self) -> None: ...


def catch_up(
    documents: Documents,
    index: FollowsChanges,
    batch: int,
    on_progress: Callable[[int], None] = lambda seq: None,
    *,
    before: Callable[[], None] = lambda: None,
    noting: Callable[[Iterable[Change]], Iterable[Change]] = lambda changes: changes,
    forget: Callable[[], None] = lambda: None,
) -> int:
    """Bring the index up to date, from the beginning if it is damaged; how many changes that took.

    What is committed meanwhile may be left for the next time: it would make a small commit, and those are dear.
    `before`, `noting` and `forget` are those of `AppliedChanges`, where the documents can lose changes.
    """
    try:
        before()
        return _follow(documents, index, batch, on_progress, noting)
    except StoreDamaged:
        index.clear()  # nothing is lost: the index is rebuilt from the documents
        forget()
        before()
        return _follow(documents, index, batch, on_progress, noting)


def clear_if_ahead(index: FollowsChanges, store: Store) -> None:
    """Begin anew if the index knows more than the documents: these are a copy of an earlier time. They are asked last,
    so another process that follows the same log does no harm. Where a failover may lose changes, `AppliedChanges`
    knows better."""
    if Capability.EPOCHS not in store.capabilities and index.position() > store.newest_seq():
        index.clear()


def catch_up_store(
    store: Store,
    index: FollowsChanges,
    batch: int,
    journal: Path,
    on_progress: Callable[[int], None] = lambda seq: None,
) -> int:
    """The same for a whole store, whose newest changes may be lost in a failover."""
    if Capability.EPOCHS not in store.capabilities:
        return catch_up(store, index, batch, on_progress)
    applied = AppliedChanges(journal)
    return catch_up(
        store,
        index,
        batch,
        on_progress,
        before=lambda: applied.reconcile(store, index),
        noting=applied.noting,
        forget=applied.forget,
    )


def _follow(
    documents: Documents,
    index: FollowsChanges,
    batch: int,
    on_progress: Callable[[int], None],
    noting: Callable[[Iterable[Change]], Iterable[Change]],
) -> int:
    taken = 0
    while newly := index.apply(noting(_changes(documents, index.position(), batch))):
        taken += newly
        on_progress(index.position())
        if newly < batch:
            index.apply(())  # one that is built anew, beside another, sees that there is no more
            break
    return taken


def _changes(documents: Documents, after: int, most: int) -> Iterator[Change]:
    """The changes after step `after`, up to the newest now."""
    while wanted := min(most, _READ_TOGETHER):
        changes = documents.changes(after, wanted)
        yield from changes
        if len(changes) < wanted:
            return
        after, most = changes[-1].seq, most - wanted


_LOCK_SECONDS = 20.0


class IndexerChild(Follower):
    """The crawl's side: `wake` costs one byte, `finish` waits until everything is searchable."""

    def __init__(self, folder: DataFolder, settings: IndexSettings, *, hybrid: bool = False) -> None:
        how = (settings.batch, settings.heap, settings.gather_seconds, settings.engine)
        super().__init__("levada.follow.index", str(folder.path), *map(str, how), *(["hybrid"] if hybrid else []))


def catch_up_vectors(folder: DataFolder, store: Store, embedder: Embedder | None, batch: int) -> None:
    """Bring the vectors beside the index of a folder up to date; without an embedder there are none."""
    if embedder is None:
        for name in ("", "-journal"):  # without the module that needs numpy
            (folder.index / f"vectors.db{name}").unlink(missing_ok=True)
        return
    from levada.search.hybrid.vectors import VectorWriter  # here: most collections have no vectors

    with closing(VectorWriter(folder.index, embedder)) as vectors:
        catch_up_store(store, vectors, batch, folder.index / "applied-vectors")


def spans_shards(engine: str) -> bool:
    """Whether one index of this engine, on servers of its own, holds the pages of all shards."""
    return engine == "opensearch"


def open_index(folder: DataFolder, engine: str, settings: Callable[[], Settings], **given: Any) -> Index:
    """The index of a folder by its engine; `settings` are only asked for the options of a plug-in."""
    if spans_shards(engine):
        root = collection_folder(folder)
        given |= {
            "collection": make_collection_name(root),
            "shard": [each.path for each in shard_folders(root)].index(folder.path),
        }
        return load("levada.indexes", engine, settings().plugins.get(engine), **given)  # type: ignore[no-any-return]
    if is_builtin("levada.indexes", engine):
        return load("levada.indexes", engine, path=folder.index, **given)  # type: ignore[no-any-return]
    path = folder.path / f"index-{engine}"
    made: Index = load("levada.indexes", engine, settings().plugins.get(engine), path=path, **given)
    return translating("levada.indexes", engine, made)


def open_writer(
    folder: DataFolder, heap: int, engine: str = "tantivy", settings: Callable[[], Settings] | None = None
) -> Index:
    """The index to write to; waits for a dying writer that still holds it."""
    root = settings or collection_folder(folder).settings
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return open_index(folder, engine, root, writer=True, heap_bytes=heap)
        except StoreLocked:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main(arguments: list[str]) -> None:
    path, batch, heap, gather_seconds, engine, *hybrid = arguments
    begin_following()
    folder = DataFolder(Path(path))
    embedder = open_embedder(collection_folder(folder).settings()) if hybrid else None
    with closing(open_shard_reader(folder)) as store:
        index = open_writer(folder, int(heap), engine)
        with suppress(StoreDamaged, IndexAway):  # then that comes first
            clear_if_ahead(index, store)

        def catch_up_all(on_progress: Callable[[int], None]) -> None:
            catch_up_store(store, index, int(batch), folder.index / "applied", on_progress)
            catch_up_vectors(folder, store, embedder, int(batch))

        follow(catch_up_all, float(gather_seconds))
        index.close()


if __name__ == "__main__":
    run_child(main)
