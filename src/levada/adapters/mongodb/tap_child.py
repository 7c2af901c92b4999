"""The process that listens to what clients say to MongoDB, and writes down what they ask.

Started by `tap` and fed through its standard input; ends when that does. It may die, hang or run out of disk or
memory: the traffic does not pass through it.
"""

from __future__ import annotations

import os
import resource
import select
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from levada.adapters.asked_file import AskedWriter, RotatingFile
from levada.adapters.child_signals import leave_signals_to_parent
from levada.adapters.mongodb.conversation import Conversations, Heard
from levada.adapters.mongodb.tap_wire import PIECE, Orders, PieceKind, TapReport
from levada.sharding.asked import AskedQuery
from levada.sharding.asked_values import ValueRule, Values

__all__ = ["Listener", "main"]

_READ = 1 << 18
_REPORT_SECONDS = 0.5
_SPACE_BESIDE = 1 << 30  # address space that Python and its libraries take, with a document being decoded


class Listener:
    """Pieces in, lines out."""

    def __init__(self, orders: Orders) -> None:
        rule = ValueRule(Values(orders.values), orders.key)
        self._file = RotatingFile(Path(orders.out), orders.rotate, orders.keep)
        self._writer = AskedWriter(self._file, rule, orders.sample)
        self.report = TapReport(Heard(), self._writer.written)
        self._conversations = Conversations(self.report.heard, "mongo", orders.memory)

    def take(self, connection: int, kind: int, at: float, data: bytes) -> None:
        if kind == PieceKind.SAID:
            for query in self._conversations.feed(connection, data, at):
                self._write(query)
        elif kind == PieceKind.LOST:
            self._conversations.lose(connection)
        elif kind == PieceKind.CLOSED:
            self._conversations.close(connection)

    def close(self) -> None:
        self._conversations.close_all()
        self._file.close()

    def _write(self, query: AskedQuery) -> None:
        try:
            self._writer.write(query)
        except OSError as error:  # a full disk: what is asked meanwhile is lost, and counted
            self.report.unwritten += 1
            self.report.trouble = error.strerror or str(error)


def main() -> None:
    leave_signals_to_parent()
    held = bytearray()
    listener: Listener | None = None
    reported = time.monotonic()
    while True:
        quiet = not select.select([0], [], [], _REPORT_SECONDS)[0]
        if listener and (quiet or time.monotonic() - reported > _REPORT_SECONDS):
            _say(listener)
            reported = time.monotonic()
        if quiet:
            continue
        data = os.read(0, _READ)
        if not data:
            break
        held += data
        listener = _take_whole(held, listener)
    if listener:
        listener.close()
        _say(listener)


def _take_whole(held: bytearray, listener: Listener | None) -> Listener | None:
    at = 0
    while len(held) - at >= PIECE.size:
        connection, kind, when, length = PIECE.unpack_from(held, at)
        end = at + PIECE.size + length
        if len(held) < end:
            break
        data = bytes(memoryview(held)[at + PIECE.size : end])
        at = end
        if listener is None:
            listener = _begin(data)
        else:
            listener.take(connection, kind, when, data)
    del held[:at]
    return listener


def _begin(data: bytes) -> Listener:
    orders = msgspec.json.decode(data, type=Orders)
    space = 4 * orders.memory + _SPACE_BESIDE
    with suppress(ValueError, OSError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return Listener(orders)


def _say(listener: Listener) -> None:
    with suppress(OSError):  # nobody listens to the listener any more
        sys.stdout.buffer.write(msgspec.json.encode(listener.report) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
