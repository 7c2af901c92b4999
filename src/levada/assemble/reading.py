"""An existing collection, opened to be read: beside a running crawl, or alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from levada.assemble.folder import DataFolder
from levada.assemble.parts import make_clock
from levada.assemble.stores import CollectionStore, open_reading_store
from levada.flow.settings import Settings
from levada.ports import Clock

__all__ = ["Collection", "open_collection"]


class Collection(msgspec.Struct, frozen=True):
    folder: DataFolder
    settings: Settings
    clock: Clock
    store: CollectionStore


@contextmanager
def open_collection(folder: DataFolder) -> Iterator[Collection]:
    """The stored pages; `NotFound` if there are none. Uses the clock of the crawl that filled it."""
    folder.must_exist()
    settings = folder.settings()
    store = open_reading_store(folder)
    try:
        yield Collection(folder, settings, make_clock(settings.clock), store)
    finally:
        store.close()
