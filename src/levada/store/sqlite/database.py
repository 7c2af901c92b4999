"""Transactions on a SQLite file, with the counters that they keep."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from levada.core.errors import StoreError
from levada.core.protocols import Faults
from levada.store.base import StoreLimits
from levada.store.rows import Row
from levada.store.sql.base import Database, Parameters, Write
from levada.store.sqlite.connection import connect, empty_log, translated

_COUNT = "INSERT INTO counters (name, n) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = n + excluded.n"


class SqliteWrite(Write):
    """A transaction in progress."""

    execute: Callable[..., sqlite3.Cursor]
    executemany: Callable[..., sqlite3.Cursor]
    _take = """INSERT INTO counters (name, n) VALUES (:name, :base + :count)
        ON CONFLICT (name) DO UPDATE SET n = max(n, :base) + :count RETURNING n"""

    def __init__(self, connection: sqlite3.Connection, operation: str, faults: Faults, seq_base: int) -> None:
        super().__init__(operation, faults, seq_base)
        self.execute = connection.execute
        self.executemany = connection.executemany

    def rows(self, sql: str, parameters: Parameters = (), /) -> list[Row]:
        return self.execute(sql, parameters).fetchall()

    def write_counts(self) -> None:
        self.executemany(_COUNT, self.changed_counts())


class SqliteDatabase(Database[SqliteWrite]):
    """One connection to a file."""

    def __init__(
        self, path: Path, limits: StoreLimits, faults: Faults, *, read_only: bool = False, older: bool = False
    ) -> None:
        super().__init__(str(path), faults)
        self.path = path
        self._connection = connect(path, limits, read_only=read_only, older=older)
        self._broken = ""

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """Writes inside fill what they delete with zeros. They do not check whether a deleted row is still referenced:
        for one page, that would read whole tables."""
        with self._lock:
            self._usable()
            self._connection.execute("PRAGMA foreign_keys = OFF")
            self._connection.execute("PRAGMA secure_delete = ON")
            try:
                yield
            finally:
                if not self._broken:
                    self._connection.execute("PRAGMA secure_delete = OFF")
                    self._connection.execute("PRAGMA foreign_keys = ON")

    def compact(self) -> None:
        """Write the file anew without what was deleted, and empty its log."""
        with self._lock:
            self._usable()
            try:
                self._faults.reach("compact.begin")
                self._connection.execute("VACUUM")
                self._faults.reach("compact.vacuumed")
                empty_log(self._connection, self.path)
                self._faults.reach("compact.end")
            except (sqlite3.Error, OSError) as error:
                raise translated(error, self.path) from error

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._usable()
            try:
                yield self._connection
            except (sqlite3.Error, OSError) as error:
                raise translated(error, self.path) from error

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        with self._lock:  # as `read` does, which costs as much as a small query
            self._usable()
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except (sqlite3.Error, OSError) as error:
                raise translated(error, self.path) from error

    def format(self) -> int:
        (version,) = self.rows("PRAGMA user_version")[0]
        return int(version)

    def mark(self) -> int | None:
        ((found,),) = self.rows("PRAGMA data_version")
        return int(found)

    def close(self) -> None:
        with self._lock:
            self._broken = self._broken or f"the store {self.path} is closed"
            self._connection.close()

    def _usable(self) -> None:
        if self._broken:
            raise StoreError(self._broken)

    def _begin(self, operation: str) -> SqliteWrite:
        self._connection.execute("BEGIN IMMEDIATE")
        return SqliteWrite(self._connection, operation, self._faults, self.seq_base)

    def _commit(self) -> None:
        self._connection.execute("COMMIT")

    def _translated(self, error: BaseException) -> StoreError | None:
        return translated(error, self.path) if isinstance(error, sqlite3.Error | OSError) else None

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            # SQLite has most likely rolled back by itself; a connection in doubt is not used again.
            self._broken = f"the store {self.path} could not roll back a failed write ({error}): start again"
            self._connection.close()
