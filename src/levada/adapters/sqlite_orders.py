"""What do people outside want of the crawl? The `Orders` port on SQLite, a small file beside the store.

A file of its own: whoever gives an order never waits for the crawl's commits, nor they for him.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from levada.adapters.sqlite.failures import translated
from levada.errors import StoreDamaged, StoreError
from levada.records import Order, Wishes

__all__ = ["SqliteOrders"]

T = TypeVar("T")

_APPLICATION_ID = 0x4C764F72  # "LvOr"
_VERSION = 1
_BUSY_SECONDS = 5.0
_SCHEMA = (
    # AUTOINCREMENT: the number of an order that was obeyed and deleted is never given to another.
    "CREATE TABLE orders (number INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL)",
    "CREATE TABLE wishes (id INTEGER PRIMARY KEY CHECK (id = 1), body BLOB NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)
_encode = msgspec.json.Encoder().encode
_decode_order = msgspec.json.Decoder(Order).decode
_decode_wishes = msgspec.json.Decoder(Wishes).decode


class SqliteOrders:
    """Threads may share one; other processes open their own."""

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

    def give(self, order: Order) -> int:
        body = _encode(order)

        def insert() -> int:
            number = self._connection.execute("INSERT INTO orders (body) VALUES (?)", (body,)).lastrowid
            assert number is not None
            return number

        return self._run(insert)

    def pending(self) -> list[tuple[int, Order]]:
        rows = self._run(
            lambda: self._connection.execute("SELECT number, body FROM orders ORDER BY number").fetchall()
        )
        return [(number, self._readable(_decode_order, body)) for number, body in rows]

    def obeyed(self, number: int, wishes: Wishes) -> None:
        def note() -> None:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("DELETE FROM orders WHERE number <= ?", (number,))
            self._connection.execute("INSERT OR REPLACE INTO wishes VALUES (1, ?)", (_encode(wishes),))
            self._connection.execute("COMMIT")

        self._run(note)

    def wishes(self) -> Wishes:
        row = self._run(lambda: self._connection.execute("SELECT body FROM wishes").fetchone())
        return self._readable(_decode_wishes, row[0]) if row else Wishes()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("BEGIN IMMEDIATE")
        if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _SCHEMA:
                self._connection.execute(statement)
        self._connection.execute("COMMIT")
        kind = self._connection.execute("PRAGMA application_id").fetchone()[0]
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if (kind, version) != (_APPLICATION_ID, _VERSION):
            raise StoreError(f"{self.path} holds no orders that this Levada can read: move it away")

    def _run(self, operation: Callable[[], T]) -> T:
        with self._lock:
            try:
                return operation()
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise translated(error, self.path) from error

    def _readable(self, decode: Callable[[bytes], T], body: bytes) -> T:
        try:
            return decode(body)
        except msgspec.MsgspecError as error:
            raise StoreDamaged(f"{self.path} holds an order that cannot be read ({error}): delete it") from error
