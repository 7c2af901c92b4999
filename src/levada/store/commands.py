"""Command queues: control commands that wait for the crawl, in a small file beside the store or in memory.

The file is separate from the store, so that a command and the crawl's commits never wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from levada.core.commands import ControlCommand, DesiredState
from levada.core.errors import StoreDamaged
from levada.store.sqlite.small_file import SmallFile

T = TypeVar("T")

_APPLICATION_ID = 0x4C764F72  # "LvOr"
_VERSION = 1
_SCHEMA = (
    # AUTOINCREMENT: the number of an executed command is never given to another.
    "CREATE TABLE orders (number INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL)",
    "CREATE TABLE wishes (id INTEGER PRIMARY KEY CHECK (id = 1), body BLOB NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)
_encode = msgspec.json.Encoder().encode
_decode_command = msgspec.json.Decoder(ControlCommand).decode
_decode_desired_state = msgspec.json.Decoder(DesiredState).decode


class SqliteCommandQueue:
    """A command queue in a file. Threads may share one; other processes open their own."""

    def __init__(self, path: Path) -> None:
        self._file = SmallFile(
            path, _SCHEMA, application_id=_APPLICATION_ID, version=_VERSION, holds="commands", durable=True
        )
        self._connection = self._file.connection

    def submit(self, command: ControlCommand) -> int:
        body = _encode(command)

        def insert() -> int:
            number = self._connection.execute("INSERT INTO orders (body) VALUES (?)", (body,)).lastrowid
            assert number is not None
            return number

        return self._file.run(insert)

    def pending(self) -> list[tuple[int, ControlCommand]]:
        rows = self._file.run(
            lambda: self._connection.execute("SELECT number, body FROM orders ORDER BY number").fetchall()
        )
        return [(number, self._readable(_decode_command, body)) for number, body in rows]

    def mark_done(self, number: int, desired_state: DesiredState) -> None:
        def note() -> None:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("DELETE FROM orders WHERE number <= ?", (number,))
            self._connection.execute("INSERT OR REPLACE INTO wishes VALUES (1, ?)", (_encode(desired_state),))
            self._connection.execute("COMMIT")

        self._file.run(note)

    def desired_state(self) -> DesiredState:
        row = self._file.run(lambda: self._connection.execute("SELECT body FROM wishes").fetchone())
        return self._readable(_decode_desired_state, row[0]) if row else DesiredState()

    def close(self) -> None:
        self._file.close()

    def _readable(self, decode: Callable[[bytes], T], body: bytes) -> T:
        try:
            return decode(body)
        except msgspec.MsgspecError as error:
            raise StoreDamaged(f"{self._file.path} holds a command that cannot be read ({error}): delete it") from error
