"""A small SQLite file beside the store, written by several threads and processes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from levada.core.errors import StoreError
from levada.store.sqlite.connection import translated, write_ahead

T = TypeVar("T")

_BUSY_SECONDS = 5.0


class SmallFile:
    """A database of one application id and version. With `durable`, a commit waits for the disk. `holds` names its
    content in the message about a file that is something else."""

    def __init__(
        self, path: Path, schema: Sequence[str], *, application_id: int, version: int, holds: str, durable: bool
    ) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self.connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise translated(error, path) from error
        try:
            self.run(lambda: self._prepare(schema, durable))
            self._check((application_id, version), holds)
        except BaseException:
            self.close()
            raise

    def run(self, operation: Callable[[], T]) -> T:
        """Run an operation alone. A failure leaves no transaction open."""
        with self._lock:
            try:
                return operation()
            except sqlite3.Error as error:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise translated(error, self.path) from error

    def close(self) -> None:
        with self._lock:
            self.connection.close()

    def _prepare(self, schema: Sequence[str], durable: bool) -> None:
        write_ahead(self.connection, _BUSY_SECONDS)
        self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self.connection.execute("BEGIN IMMEDIATE")
        if not self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in schema:
                self.connection.execute(statement)
        self.connection.execute("COMMIT")

    def _check(self, expected: tuple[int, int], holds: str) -> None:
        names = ("application_id", "user_version")
        found = self.run(lambda: tuple(self.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names))
        if found != expected:
            raise StoreError(f"{self.path} holds no {holds} that this Levada can read: move it away")
