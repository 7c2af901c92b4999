"""Opening a SQLite file: the connection, checks of its format, and errors translated for the store."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

from levada.core.errors import StoreDamaged, StoreError, StoreLocked
from levada.store.base import StoreLimits
from levada.store.sql.base import check_format, no_space

APPLICATION_ID = 0x4C764461  # "LvDa"
SCHEMA_VERSION = 7
OLDEST_VERSION = 6  # that can be upgraded
CHECKED_ON_OPENING = 64 << 20
CHECKPOINT_PAGES = 4000
WAL_BYTES_KEPT = 64 << 20
_RETRY_SECONDS = 0.005  # seconds
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_BUSY, _LOCKED, _READONLY, _CORRUPT, _DISK_FULL, _CANNOT_OPEN, _NOT_A_DATABASE = 5, 6, 8, 11, 13, 14, 26


def connect(path: Path, limits: StoreLimits, *, read_only: bool, older: bool = False) -> sqlite3.Connection:
    """A connection to a store of our format, created if there is none and it may be written. With `older`, a store
    that can be upgraded is opened too."""
    with ExitStack() as opened:
        try:
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            elif not path.exists():
                raise StoreError(f"there is no store at {path}: crawl something first")
            connection = opened.enter_context(closing(_connection(path, limits, read_only, older)))
            _prepare(connection, path, limits, read_only, older)
        except (sqlite3.Error, OSError) as error:
            raise translated(error, path) from error
        opened.pop_all()
        return connection


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Read the whole database; raise a `StoreDamaged` that says what is wrong."""
    try:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise translated(error, path) from error
    if verdict != "ok":
        raise StoreDamaged(f"{path} is damaged ({verdict}): restore a copy, or move it away and crawl again")


def write_ahead(connection: sqlite3.Connection, seconds: float) -> None:
    """Turn on the write-ahead log, and wait for others that do so: SQLite itself does not wait where they are
    writing the first page of the same file."""
    until = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return


def empty_log(connection: sqlite3.Connection, path: Path) -> None:
    """Move everything from the log to the file, and truncate the log. Waits for readers."""
    ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if busy:
        raise StoreLocked(f"{path} is being read by another process, so its log cannot be emptied: try again")


def has_log(path: Path) -> bool:
    """Whether a writer of this file has left anything in its log."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def marks(connection: sqlite3.Connection) -> tuple[int, int]:
    """The application id and the version of a file."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return application, connection.execute("PRAGMA user_version").fetchone()[0]


def is_empty(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def create_if_empty(connection: sqlite3.Connection, schema: Iterable[str], application_id: int, version: int) -> None:
    """Create these tables, unless another process did so while we waited for it."""
    connection.execute("BEGIN IMMEDIATE")
    if is_empty(connection):
        for statement in (*schema, f"PRAGMA application_id = {application_id}", f"PRAGMA user_version = {version}"):
            connection.execute(statement)
    connection.execute("COMMIT")


def translated(error: sqlite3.Error | OSError, path: Path) -> StoreError:
    """One sentence that says what happened and what to do. Nothing of the failed batch was written."""
    if isinstance(error, OSError):
        return no_space(str(path)) if error.errno in _FULL else StoreError(f"{path} cannot be used: {error}")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == _DISK_FULL:
        return no_space(str(path))
    if code in {_BUSY, _LOCKED}:
        return StoreLocked(f"{path} is held by another process: wait for it, or stop it")
    if code in {_CORRUPT, _NOT_A_DATABASE}:
        return StoreDamaged(
            f"{path} is damaged or not a database ({error}): restore a copy, or move it away and crawl again"
        )
    if code in {_READONLY, _CANNOT_OPEN}:
        return StoreError(
            f"{path} cannot be opened for this ({error}): check that its folder exists and may be written"
        )
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreError(f"{path} cannot be read or written ({error}, {name}): check the disk, then try again")


def _connection(path: Path, limits: StoreLimits, read_only: bool, older: bool) -> sqlite3.Connection:
    for mode in _reading_modes(path, older) if read_only else ("mode=rwc",):
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


def _reading_modes(path: Path, older: bool) -> tuple[str, ...]:
    """A reader opens for writing where it can, because only then can it recover the log of a killed writer. Where
    it may not write and no log is left, nothing can change. A store of an older format is only looked at: its last
    reader must not copy the log into it."""
    if older:
        return ("mode=ro",) if has_log(path) else ("mode=ro&immutable=1",)
    if os.access(path.parent, os.W_OK) or has_log(path):
        return "mode=rw", "mode=ro"
    return ("mode=ro&immutable=1",)


def _prepare(connection: sqlite3.Connection, path: Path, limits: StoreLimits, read_only: bool, older: bool) -> None:
    connection.execute(f"PRAGMA cache_size = -{max(1, limits.cache_bytes >> 10)}")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    connection.execute("BEGIN")  # one snapshot: another process may be creating the store
    application, version = marks(connection)
    empty = is_empty(connection)
    connection.execute("COMMIT")
    if application != APPLICATION_ID and not (empty and application == 0):
        raise StoreDamaged(f"{path} is a database, but not of Levada: name another folder")
    if version or not empty:
        check_format(str(path), version, SCHEMA_VERSION, OLDEST_VERSION, "folder", older=older)
    if read_only:
        if empty and not older:
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


def _create(connection: sqlite3.Connection) -> None:
    from importlib.resources import files  # imported here: a store is created once

    schema = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
    create_if_empty(connection, schema.split(";\n"), APPLICATION_ID, SCHEMA_VERSION)
