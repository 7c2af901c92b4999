"""How do the counts of terms lie in `trends.db`, and is this file one that we can use?

It holds nothing that the documents do not: whatever is wrong with it, it may be deleted and is counted again. So a
commit need not wait for the disk (`synchronous=NORMAL`): a power cut takes back whole rounds, position included.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from levada.adapters.sqlite.failures import translated
from levada.adapters.write_ahead import write_ahead
from levada.errors import StoreDamaged, StoreError

__all__ = ["open_trends_file"]

_APPLICATION_ID = 0x4C765472  # "LvTr"
_VERSION = 1
_BUSY_SECONDS = 20.0
_WAL_BYTES_KEPT = 16 << 20

_SCHEMA = (
    "CREATE TABLE numbers (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE words (term INTEGER PRIMARY KEY, word TEXT NOT NULL)",
    "CREATE TABLE sites (id INTEGER PRIMARY KEY, site TEXT NOT NULL UNIQUE)",
    """CREATE TABLE frequencies (
        term INTEGER NOT NULL,
        language TEXT NOT NULL,
        documents INTEGER NOT NULL,
        PRIMARY KEY (term, language)
    ) WITHOUT ROWID""",
    # By window first: what is asked for and what is forgotten are ranges of it.
    """CREATE TABLE news (
        window INTEGER NOT NULL,
        language TEXT NOT NULL,
        term INTEGER NOT NULL,
        site_id INTEGER NOT NULL,
        changes INTEGER NOT NULL,
        PRIMARY KEY (window, language, term, site_id)
    ) WITHOUT ROWID""",
    """CREATE TABLE pages (
        page_id INTEGER PRIMARY KEY,
        version INTEGER NOT NULL,
        language TEXT NOT NULL,
        terms BLOB
    )""",
    "CREATE TABLE reports (id INTEGER PRIMARY KEY, report BLOB NOT NULL)",
    "INSERT INTO words VALUES (0, '')",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)


def open_trends_file(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """`StoreDamaged` if it should be deleted and counted again."""
    mode = "mode=rwc" if not read_only else "mode=ro" if _has_log(path) else "mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{mode}",
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            _prepare(connection, path, read_only)
        except BaseException:
            connection.close()
            raise
        return connection
    except (sqlite3.Error, OSError) as error:
        raise translated(error, path) from error


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _prepare(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:
    if not read_only:
        write_ahead(connection, _BUSY_SECONDS)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT}")
        _create_if_empty(connection)
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION_ID:
        raise StoreError(f"{path} is a database, but not one of counts: move it away")
    if version != _VERSION:
        raise StoreDamaged(f"{path} is of another format ({version}, ours is {_VERSION}): delete it")


def _create_if_empty(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        for statement in _SCHEMA:
            connection.execute(statement)
    connection.execute("COMMIT")
