"""The capture process, and the messages between it and the proxy.

The proxy starts it and feeds it through its standard input; it ends when that does. It may die, hang or run out of
disk or memory: the traffic does not pass through it.

A piece of its input is a header (connection, kind, time, length) and bytes. The first piece holds the options as
JSON: secrets in them do not appear in the command line.
"""

from __future__ import annotations

import os
import resource
import select
import struct
import sys
import time
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

import msgspec

from levada.capture.mongodb.conversation import CaptureCounts, Conversations
from levada.capture.query_log import QueryLogWriter, RotatingFile, Written
from levada.core.processes import leave_signals_to_parent
from levada.sharding.queries import QueryEntry, ValueRule, Values

_READ = 1 << 18
_REPORT_SECONDS = 0.5
_SPACE_BESIDE = 1 << 30  # address space of Python and its libraries, with a document being decoded


PIECE = struct.Struct("<QBdI")


class PieceKind(IntEnum):
    ORDERS = 0
    SAID = 1
    LOST = 2  # bytes of this connection are missing here
    CLOSED = 3


class CaptureOptions(msgspec.Struct):
    """What the capture process should do."""

    out: str
    values: str = "keep"
    key: bytes = b""
    sample: float = 1.0
    rotate: int | None = None
    keep: int = 10
    memory: int = 64 << 20  # for incomplete messages, of all connections together


class CaptureReport(msgspec.Struct):
    """The results so far, one line of JSON on the capture process's standard output."""

    heard: CaptureCounts
    written: Written
    unwritten: int = 0  # queries that could not be written
    trouble: str = ""  # the reason of the last one


class Listener:
    """Turns pieces of traffic into lines of the query log."""

    def __init__(self, options: CaptureOptions) -> None:
        rule = ValueRule(Values(options.values), options.key)
        self._file = RotatingFile(Path(options.out), options.rotate, options.keep)
        self._writer = QueryLogWriter(self._file, rule, options.sample)
        self.report = CaptureReport(CaptureCounts(), self._writer.written)
        self._conversations = Conversations(self.report.heard, "mongo", options.memory)

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

    def _write(self, query: QueryEntry) -> None:
        try:
            self._writer.write(query)
        except OSError as error:  # a full disk: queries are lost meanwhile, and counted
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
            _report(listener)
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
        _report(listener)


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
    options = msgspec.json.decode(data, type=CaptureOptions)
    space = 4 * options.memory + _SPACE_BESIDE
    with suppress(ValueError, OSError):  # a lower limit is already set
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return Listener(options)


def _report(listener: Listener) -> None:
    with suppress(OSError):  # the proxy is gone
        sys.stdout.buffer.write(msgspec.json.encode(listener.report) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
