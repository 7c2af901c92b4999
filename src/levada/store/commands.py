"""The command queue: control commands that wait for the crawl, in a small file beside the store.

The file is separate from the store, so that a command and the crawl's commits never wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from levada.core.commands import AddSeeds, CheckNow, ControlCommand, DesiredState, DropSite
from levada.core.errors import StoreDamaged
from levada.store.sqlite.small_file import SmallFile

T = TypeVar("T")

packed = msgspec.json.Encoder().encode
_decode_command = msgspec.json.Decoder(ControlCommand).decode
_decode_desired_state = msgspec.json.Decoder(DesiredState).decode


class SqliteCommandQueue(SmallFile):
    """A command queue in a file. Threads may share one; other processes open their own."""

    application_id = 0x4C764F72  # "LvOr"
    schema = (
        # AUTOINCREMENT: the number of an executed command is never given to another.
        "CREATE TABLE orders (number INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL)",
        "CREATE TABLE wishes (id INTEGER PRIMARY KEY CHECK (id = 1), body BLOB NOT NULL)",
    )
    holds = "commands"
    durable = True

    def submit(self, command: ControlCommand) -> int:
        ((number,),) = self._rows("INSERT INTO orders (body) VALUES (?) RETURNING number", (packed(command),))
        return int(number)

    def pending(self) -> list[tuple[int, ControlCommand]]:
        rows = self._rows("SELECT number, body FROM orders ORDER BY number")
        return [(number, command_in(body, str(self.path))) for number, body in rows]

    def forget(self, is_forgotten: Callable[[str], bool]) -> None:
        """Delete what waiting commands ask about forgotten URLs and sites."""
        for number, command in self.pending():
            left = without(command, is_forgotten)
            if left is None:
                self._rows("DELETE FROM orders WHERE number = ?", (number,))
            elif left != command:
                self._rows("UPDATE orders SET body = ? WHERE number = ?", (packed(left), number))

    def mark_done(self, number: int, desired_state: DesiredState) -> None:
        with self._transaction() as run:
            run.execute("DELETE FROM orders WHERE number <= ?", (number,))
            run.execute("INSERT OR REPLACE INTO wishes VALUES (1, ?)", (packed(desired_state),))

    def desired_state(self) -> DesiredState:
        rows = self._rows("SELECT body FROM wishes")
        return desired_state_in(rows[0][0], str(self.path)) if rows else DesiredState()


def command_in(body: bytes, place: str) -> ControlCommand:
    command: ControlCommand = _readable(_decode_command, body, place)
    return command


def desired_state_in(body: bytes, place: str) -> DesiredState:
    return _readable(_decode_desired_state, body, place)


def _readable(decode: Callable[[bytes], T], body: bytes, place: str) -> T:
    try:
        return decode(body)
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"{place} holds a command that cannot be read ({error}): delete it") from error


def without(command: ControlCommand, is_forgotten: Callable[[str], bool]) -> ControlCommand | None:
    """What a command asks about anything else; None if that is nothing."""
    if isinstance(command, DropSite):
        return None if is_forgotten(command.site) else command
    if not isinstance(command, AddSeeds | CheckNow):
        return command
    urls = tuple(url for url in command.urls if not is_forgotten(url))
    if isinstance(command, AddSeeds):
        return AddSeeds(urls) if urls else None
    site = "" if is_forgotten(command.site) else command.site
    return CheckNow(urls, site) if urls or site else None
