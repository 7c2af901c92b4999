"""A search over an existing collection: the index, caught up first if a crawl was killed before it could."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from levada.adapters.tantivy_index import TantivyIndex
from levada.assemble.folder import DataFolder
from levada.assemble.indexer import open_writer
from levada.assemble.reading import Collection, open_collection
from levada.assemble.stores import open_shard_reader, plan_of, reachable_folders, shard_folders, unreachable
from levada.errors import StoreError, StoreLocked
from levada.flow.index import catch_up
from levada.ports import Index

if TYPE_CHECKING:
    from levada.adapters.sharded_index import Counted

__all__ = ["open_search"]


@contextmanager
def open_search(folder: DataFolder) -> Iterator[tuple[Collection, Index]]:
    """The stored pages and their index, ready to be searched; snippets come from the stored text."""
    with open_collection(folder) as collection:
        _catch_up_if_alone(collection)
        with ExitStack() as opened:
            index = _opened(collection, opened)
            opened.callback(index.close)
            yield collection, index


def _opened(collection: Collection, opened: ExitStack) -> Index:
    plan = plan_of(collection.folder)
    if plan is None:
        return TantivyIndex(collection.folder.index, text_of=_text_of(collection))
    from levada.adapters.sharded_index import ShardedIndex
    from levada.adapters.tantivy_shard import TantivyShard

    opened.callback(plan.close)
    shards = shard_folders(collection.folder)
    indexes = [TantivyShard(shard.index) for shard in shards]
    counted = None if unreachable(collection.store) else _counts(shards, opened)
    return ShardedIndex(indexes, plan, text_of=_text_of(collection), counted=counted)


def _counts(shards: Sequence[DataFolder], opened: ExitStack) -> Counted | None:
    """How often words stand in each shard's documents, if all are counted up to date."""
    from levada.adapters.sqlite_trends import SqliteTrends

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


def _catch_up_if_alone(collection: Collection) -> None:
    """A running crawl keeps its index current by itself, a little behind the documents."""
    try:
        with collection.folder.locked():
            for shard in reachable_folders(collection.folder, collection.store):
                _catch_up(collection, shard)
    except StoreError as error:
        if not isinstance(error, StoreLocked) and _can_write(collection):
            raise


def _catch_up(collection: Collection, shard: DataFolder) -> None:
    with (
        closing(open_shard_reader(shard)) as store,
        closing(open_writer(shard, collection.settings.index.heap)) as index,
    ):
        catch_up(store, index, collection.settings.index.batch)


def _can_write(collection: Collection) -> bool:
    """Somebody else's collection may be read as it is."""
    return os.access(collection.folder.path, os.W_OK)


def _text_of(collection: Collection) -> Callable[[str], str]:
    def text(url: str) -> str:
        try:
            document = collection.store.document(url)
        except StoreError:
            if unreachable(collection.store):
                return ""  # a hit without an excerpt is better than none
            raise
        return document.text if document else ""

    return text
