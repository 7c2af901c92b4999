"""How does the proxy tell the process that listens what a client said?

Pieces of a header (connection, kind, time, length) and bytes. The first piece is the listener's orders, as JSON:
what may be secret in them does not stand in its command line.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import msgspec

from levada.adapters.asked_file import Written
from levada.adapters.mongodb.conversation import Heard

__all__ = ["PIECE", "Orders", "PieceKind", "TapReport"]

PIECE = struct.Struct("<QBdI")


class PieceKind(IntEnum):
    ORDERS = 0
    SAID = 1
    LOST = 2  # bytes of this connection are missing here
    CLOSED = 3


class Orders(msgspec.Struct):
    out: str
    values: str = "keep"
    key: bytes = b""
    sample: float = 1.0
    rotate: int | None = None
    keep: int = 10
    memory: int = 64 << 20  # for messages that are not whole yet, of all connections together


class TapReport(msgspec.Struct):
    """What the listener has come to so far, a line of JSON on its standard output."""

    heard: Heard
    written: Written
    unwritten: int = 0  # queries that could not be written
    trouble: str = ""  # why, of the last one
