"""Copying a SQLite store while others write to it: a consistent snapshot in one file, verified.

SQLite's online backup copies pages in steps. One read transaction spans all of them: writers go on, and no write of
theirs makes the copy start again. The copy appears under its name only when it is complete and synced.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from levada.core.errors import StoreFull
from levada.core.files import replacing
from levada.core.protocols import Faults
from levada.core.words import size
from levada.store.faults import NoFaults
from levada.store.sqlite.connection import check, has_log, translated

_STEP_PAGES = 2048
_BUSY_SECONDS = 20.0
_SPARE = 16 << 20  # bytes left for others on the disk
Progress = Callable[[int, int], None]
"""Told how many bytes are done, and of how many."""


class DatabaseSnapshot:
    """A SQLite file as it is at this moment, whatever is written to it from now on. Until it is closed, the file's
    log keeps all that is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as opened:
            try:
                self._reading = opened.enter_context(closing(self._open()))
                self._reading.execute("PRAGMA query_only = ON")
                self._reading.execute("BEGIN")
                self._reading.execute("SELECT count(*) FROM sqlite_master").fetchone()  # begins the snapshot
                (page_bytes,) = self._reading.execute("PRAGMA page_size").fetchone()
                (pages,) = self._reading.execute("PRAGMA page_count").fetchone()
            except (sqlite3.Error, OSError) as error:
                raise translated(error, path) from error
            opened.pop_all()
        self._page_bytes = page_bytes
        self.bytes = page_bytes * pages

    def copy(
        self,
        target: Path,
        *,
        on_progress: Progress = lambda done, total: None,
        reach: Callable[[str], None] = lambda step: None,
    ) -> None:
        """Copy it to a new file, which is checked but not synced."""
        try:
            with closing(sqlite3.connect(target, isolation_level=None)) as writing:
                writing.execute("PRAGMA synchronous = OFF")

                def told(_status: int, left: int, total: int) -> None:
                    reach("step")
                    on_progress((total - left) * self._page_bytes, total * self._page_bytes)

                self._reading.backup(writing, pages=_STEP_PAGES, progress=told)
                reach("check")
                check(writing, target)
        except (sqlite3.Error, OSError) as error:
            raise translated(error, target) from error

    def close(self) -> None:
        self._reading.close()

    def _open(self) -> sqlite3.Connection:
        """For writing where that is allowed: only then can the log of a killed writer be read."""
        address = self.path.absolute().as_uri()
        if os.access(self.path.parent, os.W_OK):
            mode = "mode=rw"
        else:
            mode = "mode=ro" if has_log(self.path) else "mode=ro&immutable=1"
        return sqlite3.connect(f"{address}?{mode}", uri=True, isolation_level=None, timeout=_BUSY_SECONDS)


def copy_database(
    source: Path,
    target: Path,
    *,
    on_progress: Progress = lambda done, total: None,
    faults: Faults | None = None,
    operation: str = "copy",
) -> None:
    """Copy the store in `source` to `target`, which is replaced."""
    faults = faults or NoFaults()

    def reach(step: str) -> None:
        faults.reach(f"{operation}.{step}")

    try:
        with replacing(target, reach) as draft, closing(DatabaseSnapshot(source)) as snapshot:
            snapshot.copy(draft, on_progress=on_progress, reach=reach)
    except OSError as error:
        raise translated(error, target) from error


def database_bytes(path: Path) -> int:
    """The bytes of a store with what is still in its log."""
    log = path.with_name(f"{path.name}-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)


def must_have_room(folder: Path, needed: int, what: str, otherwise: str) -> None:
    """Raise a `StoreFull` that says what to do if the disk has no room for `needed` bytes."""
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE:
        raise StoreFull(f"{what} needs {size(needed + _SPARE)} in {folder}, and {size(free)} are free: {otherwise}")
