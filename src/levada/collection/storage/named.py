"""The collections that have names: where each lies, and what it holds."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from levada.collection.collection import Collection
from levada.core.configuration.places import named_folders
from levada.core.errors import LevadaError
from levada.core.folder import DataFolder


class NamedCollection(msgspec.Struct, frozen=True):
    """A collection that has a name.

    >>> levada.collections()
    []
    """

    name: str
    path: Path
    pages: int | None = None  # stored; None: there is no collection yet, or `trouble` says why it cannot be read
    bytes: int = 0  # of all files in its folder
    crawling: bool = False
    trouble: str = ""


def named_collections() -> list[NamedCollection]:
    """Every collection that has a name, by name."""
    return [_described(name, path) for name, path in named_folders().items()]


def _described(name: str, path: Path) -> NamedCollection:
    try:
        if not DataFolder(path).exists():
            return NamedCollection(name, path)
        with Collection(path, create=False) as collection:
            stored, crawling = collection.stats().stored, collection.live() is not None
        return NamedCollection(name, path, stored, _bytes_in(path), crawling)
    except LevadaError as error:
        return NamedCollection(name, path, trouble=str(error))


def _bytes_in(path: Path) -> int:
    total = 0
    for place, _, files in os.walk(path):
        for file in files:
            try:
                total += os.lstat(os.path.join(place, file)).st_size
            except OSError:
                continue  # it was deleted meanwhile
    return total
