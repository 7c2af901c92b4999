"""Is this file a store that we can use?"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from levada.adapters.limits import StoreLimits
from levada.adapters.sqlite.failures import translated
from levada.adapters.sqlite.schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION
from levada.adapters.write_ahead import write_ahead
from levada.errors import StoreDamaged, StoreError, StoreTooNew

__all__ = ["check", "connect"]

CHECKED_ON_OPENING = 64 << 20
CHECKPOINT_PAGES = 4000
WAL_BYTES_KEPT = 64 << 20


def connect(path: Path, limits: StoreLimits, *, read_only: bool) -> sqlite3.Connection:
    """A connection to a store of our own format, made new if there is none and it may be written."""
    try:
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.exists():
            raise StoreError(f"there is no store at {path}: crawl something first")
        connection = _connection(path, limits, read_only)
        try:
            _prepare(connection, path, limits, read_only)
        except BaseException:
            connection.close()
            raise
        return connection
    except (sqlite3.Error, OSError) as error:
        raise translated(error, path) from error


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Read the whole database; `StoreDamaged` says what is wrong."""
    try:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise translated(error, path) from error
    if verdict != "ok":
        raise StoreDamaged(f"{path} is damaged ({verdict}): restore a copy, or move it away and crawl again")


def _connection(path: Path, limits: StoreLimits, read_only: bool) -> sqlite3.Connection:
    for mode in _reading_modes(path) if read_only else ("mode=rwc",):
        try:
            connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?{mode}",
                uri=True,
                timeout=limits.busy_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
        except sqlite3.OperationalError:
            if mode == "mode=rw":
                continue
            raise
        return connection
    raise StoreError(f"{path} cannot be opened")


def _reading_modes(path: Path) -> tuple[str, ...]:
    """A reader opens for writing where it can, because only so may it recover the log of a writer that was killed;
    where nobody may write and no log is left, there is nothing to wait for either."""
    log = path.with_name(f"{path.name}-wal")
    if os.access(path.parent, os.W_OK) or (log.exists() and log.stat().st_size):
        return "mode=rw", "mode=ro"
    return ("mode=ro&immutable=1",)


def _prepare(connection: sqlite3.Connection, path: Path, limits: StoreLimits, read_only: bool) -> None:
    connection.execute(f"PRAGMA cache_size = -{max(1, limits.cache_bytes >> 10)}")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    connection.execute("BEGIN")  # all of one moment: another process may be making the store just now
    application, version = _marks(connection)
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    connection.execute("COMMIT")
    if application != APPLICATION_ID and not (empty and application == 0):
        raise StoreDamaged(f"{path} is a database, but not of Levada: name another folder")
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"{path} was written by a newer Levada (format {version}, ours is {SCHEMA_VERSION}): update Levada"
        )
    if not empty and version < SCHEMA_VERSION:
        raise StoreError(
            f"{path} was written by an older Levada (format {version}, ours is {SCHEMA_VERSION}): "
            "crawl into another folder, or use that Levada"
        )
    if read_only:
        if empty:
            raise StoreError(f"there is nothing in the store at {path} yet: crawl something first")
        return
    write_ahead(connection, limits.busy_seconds)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
    if empty:
        _create(connection)
    elif path.stat().st_size <= CHECKED_ON_OPENING:
        check(connection, path)


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have been first while we waited.
    if _marks(connection)[0] != APPLICATION_ID:
        for statement in SCHEMA:
            connection.execute(statement)
    connection.execute("COMMIT")
