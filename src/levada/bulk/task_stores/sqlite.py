"""The task store in a SQLite file, for instances on one machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from levada.bulk.protocols import Away
from levada.bulk.task_stores.sql import TABLES, SqlTaskStore
from levada.bulk.tasks import LoadStatus
from levada.core.errors import StoreError, StoreFull
from levada.core.protocols import Clock
from levada.store.sqlite.connection import write_ahead

_PATIENCE = 30.0


class SqliteTaskStore(SqlTaskStore):
    """Tasks in a file."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._lock = Lock()  # the heartbeat runs on a thread of its own
        self._opened: sqlite3.Connection | None = None

    def status(self, name: str) -> LoadStatus | None:
        """Read the status without creating a file."""
        return super().status(name) if self._path.exists() else None

    def _base(self) -> sqlite3.Connection:
        if self._opened is not None:
            return self._opened
        path = self._path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            base = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                write_ahead(base, _PATIENCE)
                base.execute("PRAGMA synchronous = NORMAL")
                for table in TABLES:
                    base.execute(table)
            except BaseException:
                base.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"the task store {path} cannot be opened: {error}") from error
        self._opened = base
        return base

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        with self._lock:
            base = self._base()
            try:
                base.execute("BEGIN IMMEDIATE")
                try:
                    yield
                except BaseException:
                    base.execute("ROLLBACK")
                    raise
                base.execute("COMMIT")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                    raise StoreFull("the disk of the task store is full") from error
                raise Away(f"the task store cannot be used: {error}") from error

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _run(self, statement: str, *values: object) -> list[Any]:
        return self._base().execute(statement, values).fetchall()

    def _now(self) -> float:
        return self._clock.now()
