"""Messages from the proxy to the capture process.

A piece is a header (connection, kind, time, length) and bytes. The first piece holds the options as JSON: secrets
in them do not appear in the command line.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import msgspec

from levada.capture.mongodb.conversation import CaptureCounts
from levada.capture.query_log import Written

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
