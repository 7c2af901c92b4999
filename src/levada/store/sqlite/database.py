"""Transactions on a SQLite file, with the counters that they keep."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from levada.core.errors import StoreError
from levada.core.protocols import Faults
from levada.store.base import StoreLimits
from levada.store.rows import Row
from levada.store.sql.base import Parameters
from levada.store.sqlite.connection import connect, translated

_TOGETHER: nullcontext[None] = nullcontext()
_WRITE_COUNTERS = "INSERT INTO counters (name, n) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = excluded.n"


class SqliteWrite:
    """A transaction in progress. Counters are read at its beginning and written once, at its end."""

    def __init__(self, connection: sqlite3.Connection, operation: str, faults: Faults, seq_base: int) -> None:
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.counts: dict[str, int] = dict(connection.execute("SELECT name, n FROM counters"))
        self._changed: set[str] = set()
        self._operation = operation
        self._faults = faults
        self._seq_base = seq_base

    def rows(self, sql: str, parameters: Parameters = (), /) -> list[Row]:
        return self.execute(sql, parameters).fetchall()

    def count(self, name: str, n: int = 1) -> None:
        if n:
            self.count_from(0, name, n)

    def count_from(self, base: int, name: str, n: int) -> int:
        """Count `n` more, from `base` at least; return the new total."""
        total = self.counts[name] = max(self.counts.get(name, 0), base) + n
        self._changed.add(name)
        return total

    def take_steps(self, count: int) -> range:
        if not count:
            return range(0)
        last = self.count_from(self._seq_base, "seq", count)
        return range(last - count + 1, last + 1)

    def pipeline(self) -> nullcontext[None]:
        """Does nothing: statements cost no round trip here."""
        return _TOGETHER

    def write_counts(self) -> None:
        self.executemany(_WRITE_COUNTERS, [(name, self.counts[name]) for name in sorted(self._changed)])

    def reach(self, step: str) -> None:
        self._faults.reach(f"{self._operation}.{step}")


class SqliteDatabase:
    """One connection with one transaction at a time. Every failure of the engine becomes a `StoreError`."""

    def __init__(self, path: Path, limits: StoreLimits, faults: Faults, *, read_only: bool = False) -> None:
        self.path = path
        self.place = str(path)
        self.seq_base = 0  # changes are numbered from here at least
        self._faults = faults
        self._lock = threading.RLock()
        self._connection = connect(path, limits, read_only=read_only)
        self._broken = ""

    @contextmanager
    def write(self, operation: str) -> Iterator[SqliteWrite]:
        """A transaction: committed if the block ends normally, otherwise rolled back and the failure raised."""
        with self._lock:
            self._usable()
            try:
                self._faults.reach(f"{operation}.begin")
                self._connection.execute("BEGIN IMMEDIATE")
                self._faults.reach(f"{operation}.begun")
                write = SqliteWrite(self._connection, operation, self._faults, self.seq_base)
                yield write
                write.write_counts()
                write.reach("before-commit")
                self._connection.execute("COMMIT")
                write.reach("after-commit")
            except BaseException as error:
                self._roll_back()
                if isinstance(error, sqlite3.Error | OSError):
                    raise translated(error, self.path) from error
                raise

    @contextmanager
    def unchecked(self) -> Iterator[None]:
        """Writes inside do not check whether a deleted row is still referenced: for one page, that would read whole
        tables."""
        with self._lock:
            self._usable()
            self._connection.execute("PRAGMA foreign_keys = OFF")
            try:
                yield
            finally:
                if not self._broken:
                    self._connection.execute("PRAGMA foreign_keys = ON")

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
        """A number that changes with every commit of another connection."""
        ((found,),) = self.rows("PRAGMA data_version")
        return int(found)

    def close(self) -> None:
        with self._lock:
            self._broken = self._broken or f"the store {self.path} is closed"
            self._connection.close()

    def _usable(self) -> None:
        if self._broken:
            raise StoreError(self._broken)

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            # SQLite has most likely rolled back by itself; a connection in doubt is not used again.
            self._broken = f"the store {self.path} could not roll back a failed write ({error}): start again"
            self._connection.close()
