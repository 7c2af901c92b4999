"""What do people outside want of the crawl? The `Orders` port on SQLite, a small file beside the store.

A file of its own: whoever gives an order never waits for the crawl's commits, nor they for him.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from levada.adapters.small_file import SmallFile
from levada.errors import StoreDamaged
from levada.orders import Order, Wishes

__all__ = ["SqliteOrders"]

T = TypeVar("T")

_APPLICATION_ID = 0x4C764F72  # "LvOr"
_VERSION = 1
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
        self._file = SmallFile(
            path, _SCHEMA, application_id=_APPLICATION_ID, version=_VERSION, holds="orders", durable=True
        )
        self._connection = self._file.connection

    def give(self, order: Order) -> int:
        body = _encode(order)

        def insert() -> int:
            number = self._connection.execute("INSERT INTO orders (body) VALUES (?)", (body,)).lastrowid
            assert number is not None
            return number

        return self._file.run(insert)

    def pending(self) -> list[tuple[int, Order]]:
        rows = self._file.run(
            lambda: self._connection.execute("SELECT number, body FROM orders ORDER BY number").fetchall()
        )
        return [(number, self._readable(_decode_order, body)) for number, body in rows]

    def obeyed(self, number: int, wishes: Wishes) -> None:
        def note() -> None:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("DELETE FROM orders WHERE number <= ?", (number,))
            self._connection.execute("INSERT OR REPLACE INTO wishes VALUES (1, ?)", (_encode(wishes),))
            self._connection.execute("COMMIT")

        self._file.run(note)

    def wishes(self) -> Wishes:
        row = self._file.run(lambda: self._connection.execute("SELECT body FROM wishes").fetchone())
        return self._readable(_decode_wishes, row[0]) if row else Wishes()

    def close(self) -> None:
        self._file.close()

    def _readable(self, decode: Callable[[bytes], T], body: bytes) -> T:
        try:
            return decode(body)
        except msgspec.MsgspecError as error:
            raise StoreDamaged(
                f"{self._file.path} holds an order that cannot be read ({error}): delete it"
            ) from error
