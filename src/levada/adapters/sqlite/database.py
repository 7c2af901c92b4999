"""How is one durable transaction made, whole or not at all?"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import Row
from levada.adapters.sqlite.counters import Counters
from levada.adapters.sqlite.failures import translated
from levada.adapters.sqlite.opening import connect
from levada.errors import StoreError
from levada.ports import Faults

__all__ = ["Database", "Write"]


class Write:
    """One transaction under way."""

    def __init__(self, connection: sqlite3.Connection, operation: str, faults: Faults, seq_base: int) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.counters = Counters(connection)
        self._operation = operation
        self._faults = faults
        self._seq_base = seq_base

    def next_seq(self) -> int:
        """The number of the next step of change."""
        return self.counters.add("seq", base=self._seq_base)

    def reach(self, step: str) -> None:
        self._faults.reach(f"{self._operation}.{step}")


class Database:
    """One connection, one transaction at a time; every failure of the engine becomes a `StoreError`."""

    def __init__(self, path: Path, limits: StoreLimits, faults: Faults, *, read_only: bool = False) -> None:
        self.path = path
        self.seq_base = 0  # steps of change are numbered from here at least
        self._faults = faults
        self._lock = threading.RLock()
        self._connection = connect(path, limits, read_only=read_only)
        self._broken = ""

    @contextmanager
    def write(self, operation: str) -> Iterator[Write]:
        """A transaction that is committed if the block ends well, else rolled back and the failure raised."""
        with self._lock:
            self._usable()
            try:
                self._faults.reach(f"{operation}.begin")
                self._connection.execute("BEGIN IMMEDIATE")
                self._faults.reach(f"{operation}.begun")
                write = Write(self._connection, operation, self._faults, self.seq_base)
                yield write
                write.counters.write()
                write.reach("before-commit")
                self._connection.execute("COMMIT")
                write.reach("after-commit")
            except (sqlite3.Error, OSError) as error:
                self._roll_back()
                raise translated(error, self.path) from error
            except BaseException:
                self._roll_back()
                raise

    @contextmanager
    def unchecked(self) -> Iterator[None]:
        """Writes inside do not look whether something still refers to a row that goes: to tell so of one page, all
        of some tables would be read."""
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

    def rows(self, sql: str, parameters: Row = ()) -> list[Row]:
        with self._lock:  # as `read` does, which costs as much as a small query
            self._usable()
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except (sqlite3.Error, OSError) as error:
                raise translated(error, self.path) from error

    def format(self) -> int:
        (version,) = self.rows("PRAGMA user_version")[0]
        return int(version)

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
            # The engine has most likely rolled back by itself; a connection in doubt is not used again.
            self._broken = f"the store {self.path} could not undo a failed write ({error}): start again"
            self._connection.close()
