"""Which hooks are there? A small file beside the store, written only by the server."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from levada.adapters.sqlite.failures import translated
from levada.errors import StoreDamaged, StoreError
from levada.records import Hook

__all__ = ["SqliteHooks"]

T = TypeVar("T")

_APPLICATION_ID = 0x4C76486B  # "LvHk"
_VERSION = 1
_BUSY_SECONDS = 5.0
_SCHEMA = (
    "CREATE TABLE hooks (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Hook).decode


class SqliteHooks:
    """`levada.ports.Hooks`; threads may share one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise translated(error, path) from error
        try:
            self._run(self._prepare)
        except BaseException:
            self.close()
            raise

    def hooks(self) -> list[Hook]:
        rows = self._run(lambda: self._connection.execute("SELECT body FROM hooks ORDER BY id").fetchall())
        try:
            return [_decode(body) for (body,) in rows]
        except msgspec.MsgspecError as error:
            raise StoreDamaged(f"{self.path} holds a hook that cannot be read ({error}): delete it") from error

    def add(self, hook: Hook) -> None:
        self._run(lambda: self._connection.execute("INSERT INTO hooks VALUES (?, ?)", (hook.id, _encode(hook))))

    def update(self, hook: Hook) -> bool:
        return self._changed("UPDATE hooks SET body = ?2 WHERE id = ?1", hook.id, _encode(hook))

    def remove(self, id: str) -> bool:
        return self._changed("DELETE FROM hooks WHERE id = ?1", id)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _changed(self, statement: str, *values: str | bytes) -> bool:
        return self._run(lambda: self._connection.execute(statement, values)).rowcount > 0

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        # Whatever of a place is lost is told again, under the same ids.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("BEGIN IMMEDIATE")
        if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _SCHEMA:
                self._connection.execute(statement)
        self._connection.execute("COMMIT")
        kind = self._connection.execute("PRAGMA application_id").fetchone()[0]
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if (kind, version) != (_APPLICATION_ID, _VERSION):
            raise StoreError(f"{self.path} holds no hooks that this Levada can read: move it away")

    def _run(self, operation: Callable[[], T]) -> T:
        with self._lock:
            try:
                return operation()
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise translated(error, self.path) from error
