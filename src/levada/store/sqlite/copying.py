"""Copying a SQLite store while others write to it: a consistent snapshot in one file, verified.

SQLite's online backup copies pages in steps. One read transaction spans all of them: writers go on, and no write of
theirs makes the copy start again. The copy appears under its name only when it is complete and synced.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from levada.core.errors import StoreFull
from levada.core.files import replacing
from levada.core.protocols import Faults
from levada.core.words import size
from levada.store.faults import NoFaults
from levada.store.sqlite.connection import check, translated

_STEP_PAGES = 2048
_SPARE = 16 << 20  # bytes left for others on the disk
Progress = Callable[[int, int], None]
"""Told how many bytes are done, and of how many."""


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
        with replacing(target, reach) as draft:
            _copy(source, draft, on_progress, reach)
    except (sqlite3.Error, OSError) as error:
        raise translated(error, target) from error


def _copy(source: Path, draft: Path, on_progress: Progress, reach: Callable[[str], None]) -> None:
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as reading,
        closing(sqlite3.connect(draft, isolation_level=None)) as writing,
    ):
        reading.execute("PRAGMA query_only = ON")
        writing.execute("PRAGMA synchronous = OFF")  # synced once, at the end
        (page_bytes,) = reading.execute("PRAGMA page_size").fetchone()
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_master").fetchone()  # begins the snapshot

        def told(_status: int, left: int, total: int) -> None:
            reach("step")
            on_progress((total - left) * page_bytes, total * page_bytes)

        reading.backup(writing, pages=_STEP_PAGES, progress=told)
        reading.execute("COMMIT")
        reach("check")
        check(writing, draft)


def database_bytes(path: Path) -> int:
    """The bytes of a store with what is still in its log."""
    log = path.with_name(f"{path.name}-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)


def must_have_room(folder: Path, needed: int, what: str, otherwise: str) -> None:
    """Raise a `StoreFull` that says what to do if the disk has no room for `needed` bytes."""
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE:
        raise StoreFull(f"{what} needs {size(needed + _SPARE)} in {folder}, and {size(free)} are free: {otherwise}")
