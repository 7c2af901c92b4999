"""Errors of the SQLite files beside an index, which can be rebuilt, as errors of the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from levada.core.errors import StoreDamaged, StoreError, StoreFull


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn every failure of SQLite in the block into a `StoreError` about the file."""
    try:
        yield
    except sqlite3.Error as error:
        if "full" in str(error):
            raise StoreFull(f"the disk with {path} is full: make room and start again, nothing is lost") from error
        if isinstance(error, sqlite3.OperationalError):
            raise StoreError(f"{path} cannot be written: {error}") from error
        raise StoreDamaged(f"{path} cannot be read ({error}); it can be rebuilt from the documents") from error
