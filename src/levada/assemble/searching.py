"""A search over an existing collection: the index, caught up first if a crawl was killed before it could."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from levada.adapters.tantivy_index import TantivyIndex
from levada.assemble.folder import DataFolder
from levada.assemble.indexer import open_writer
from levada.assemble.reading import Collection, open_collection
from levada.errors import StoreError, StoreLocked
from levada.flow.index import catch_up
from levada.ports import Index

__all__ = ["open_search"]


@contextmanager
def open_search(folder: DataFolder) -> Iterator[tuple[Collection, Index]]:
    """The stored pages and their index, ready to be searched; snippets come from the stored text."""
    with open_collection(folder) as collection:
        _catch_up_if_alone(collection)
        index = TantivyIndex(folder.index, text_of=_text_of(collection))
        try:
            yield collection, index
        finally:
            index.close()


def _catch_up_if_alone(collection: Collection) -> None:
    """A running crawl keeps its index current by itself, a little behind the documents."""
    try:
        with collection.folder.locked():
            index = open_writer(collection.folder, collection.settings.index.heap)
            try:
                catch_up(collection.store, index, collection.settings.index.batch)
            finally:
                index.close()
    except StoreError as error:
        if not isinstance(error, StoreLocked) and _can_write(collection):
            raise


def _can_write(collection: Collection) -> bool:
    """Somebody else's collection may be read as it is."""
    return os.access(collection.folder.path, os.W_OK)


def _text_of(collection: Collection) -> Callable[[str], str]:
    def text(url: str) -> str:
        document = collection.store.document(url)
        return document.text if document else ""

    return text
