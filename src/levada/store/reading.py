"""An existing collection opened for reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from levada.core.clock import make_clock
from levada.core.folder import DataFolder
from levada.core.protocols import Clock
from levada.core.settings import Settings
from levada.store.base import Store
from levada.store.opening import open_reading_store


class OpenedCollection(msgspec.Struct, frozen=True):
    """A collection that is open for reading."""

    folder: DataFolder
    settings: Settings
    clock: Clock
    store: Store


@contextmanager
def open_collection(folder: DataFolder) -> Iterator[OpenedCollection]:
    """Open a collection with the clock of the crawl that filled it; `NotFound` if there is none."""
    folder.must_exist()
    settings = folder.settings()
    store = open_reading_store(folder, settings.store.read_seconds)
    try:
        yield OpenedCollection(folder, settings, make_clock(settings.clock), store)
    finally:
        store.close()
