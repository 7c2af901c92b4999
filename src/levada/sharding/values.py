"""Values of any kind as bytes, in one order.

A total order over everything that a document may hold: missing, null, numbers, text, bytes, booleans. Bytes compare
as the values do, and no encoding is a prefix of another, so that encodings can be concatenated. Whole numbers and
fractions are one kind (`1` is `1.0`); beyond 2^63 they are distinguished only as well as floating point can, which
keeps the order. A sub-document and an array are their JSON text, a time is ISO 8601 in UTC, as in a query log
(`levada.sharding.queries`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

AFTER: Final = b"\xff"  # sorts after every encoding, and after everything that starts with it
_LOWEST, _NULL, _NUMBER, _TEXT, _BYTES, _TRUTH = b"\x01", b"\x02", b"\x10", b"\x20", b"\x30", b"\x40"
_END = b"\x00\x00"  # of text and bytes, in which a zero is followed by 255
_DOUBLE = struct.Struct(">d")
_WHOLE = struct.Struct(">BdB")
_EXACT = 1 << 53
_WORD = 1 << 63
_SIGN = 1 << 63
_ALL = (1 << 64) - 1


class _Missing:
    """The value of a field that a document does not have."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
_json = msgspec.json.Encoder(order="sorted", enc_hook=str).encode


def encoded(value: Any) -> bytes:
    """Bytes that sort as the values do."""
    if value.__class__ is int and 0 <= value <= _EXACT:
        return _WHOLE.pack(0x10, -float(value), 0x80)  # the sign of the opposite is the bit that `_double` sets
    if isinstance(value, str):
        return ordered_text(value) + _END
    if isinstance(value, bool):
        return _TRUTH + (b"\x01" if value else b"\x00")
    if isinstance(value, int | float):
        return _NUMBER + _number(value)
    if value is None:
        return _NULL
    if value is MISSING:
        return _LOWEST
    if isinstance(value, bytes):
        return _BYTES + value.replace(b"\x00", b"\x00\xff") + _END
    return ordered_text(_as_text(value)) + _END


def ordered_text(text: str) -> bytes:
    """The common prefix of all texts that start with this one."""
    return _TEXT + text.encode("utf-8", "surrogatepass").replace(b"\x00", b"\x00\xff")


def kind_range(value: Any) -> tuple[bytes, bytes]:
    """Start and end of the encodings of this value's kind: a range is of one kind."""
    kind = encoded(value)[:1]
    return kind, kind + AFTER


def dig(document: Mapping[str, Any], field: str) -> Any:
    """The value of a dotted field; MISSING where there is none."""
    if field in document:
        return document[field]
    at: Any = document
    for name in field.split("."):
        if not isinstance(at, Mapping) or name not in at:
            return MISSING
        at = at[name]
    return at


def _number(value: float) -> bytes:
    if isinstance(value, float):
        return _double(value) + b"\x80"
    if -_EXACT <= value <= _EXACT:
        return _double(float(value)) + b"\x80"
    try:
        near = float(value)
    except OverflowError:
        return _double(math.inf if value > 0 else -math.inf) + b"\x80"
    rest = value - int(near) if -_WORD <= value < _WORD else 0
    if not rest:
        return _double(near) + b"\x80"
    # what floating point lost of a whole number, at most 512 either way
    return _double(near) + (b"\x81" if rest > 0 else b"\x7f") + (rest + 0x8000).to_bytes(2, "big")


def _double(value: float) -> bytes:
    if math.isnan(value):
        return b"\x00" * 8  # before every number
    bits = int.from_bytes(_DOUBLE.pack(value or 0.0), "big")  # -0.0 is 0.0
    return ((bits ^ _ALL) if bits & _SIGN else bits | _SIGN).to_bytes(8, "big")


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return moment.isoformat(timespec="milliseconds") + "Z"
    try:
        return _json(value).decode("utf-8", "replace")
    except (RecursionError, TypeError, ValueError, msgspec.MsgspecError):
        return f"{type(value).__name__} that cannot be written"
