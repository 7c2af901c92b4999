"""A small SQLite file beside the store, written by several threads and processes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from levada.core.errors import StoreError
from levada.store.rows import Row
from levada.store.sql.base import Parameters
from levada.store.sqlite.connection import create_if_empty, empty_log, has_log, marks, translated, write_ahead

_WAL_BYTES_KEPT = 16 << 20


class SmallFile:
    """A database of one application id and version. Every failure of it is a `StoreError`."""

    application_id: ClassVar[int]
    version: ClassVar[int] = 1
    schema: ClassVar[Sequence[str]]
    holds: ClassVar[str]  # its content, in the message about a file that is something else
    durable: ClassVar[bool]  # whether a commit waits for the disk
    busy_seconds: ClassVar[float] = 5.0

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._lock = threading.RLock()
        mode = "mode=rwc" if not read_only else "mode=ro" if has_log(path) else "mode=ro&immutable=1"
        with self._translated():
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?{mode}",
                uri=True,
                timeout=self.busy_seconds,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                if not read_only:
                    self._prepare()
                self._check(*marks(self._connection))
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def compact(self) -> None:
        """Leave no byte of what was deleted in the file or its log."""
        with self._lock, self._translated():
            self._connection.execute("VACUUM")
            empty_log(self._connection, self.path)

    def _rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        with self._lock, self._translated():
            return self._connection.execute(sql, parameters).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All that the block writes, or an error and nothing."""
        with self._lock, self._translated():
            try:
                self._reach("begin")
                self._connection.execute("BEGIN IMMEDIATE")
                self._reach("begun")
                yield self._connection
                self._reach("before-commit")
                self._connection.execute("COMMIT")
                self._reach("after-commit")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def _reach(self, step: str) -> None:
        """Pass a point at which a test may inject a fault."""

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise translated(error, self.path) from error

    def _prepare(self) -> None:
        write_ahead(self._connection, self.busy_seconds)
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'NORMAL'}")
        self._connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT}")
        create_if_empty(self._connection, self.schema, self.application_id, self.version)

    def _check(self, application_id: int, version: int) -> None:
        if (application_id, version) != (self.application_id, self.version):
            raise StoreError(f"{self.path} holds no {self.holds} that this Levada can read: move it away")
