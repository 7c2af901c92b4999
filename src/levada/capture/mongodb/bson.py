"""BSON documents: elements, values and their JSON scalars.

The bytes are untrusted: lengths are compared with the data before anything is read, and a document larger than any
query needs is not decoded at all. Documents to be inserted are counted, never decoded. Source: the BSON
specification 1.1, bsonspec.org.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import bson
from bson import json_util
from bson.binary import UUID_SUBTYPE, Binary
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.objectid import ObjectId
from bson.timestamp import Timestamp

from levada.sharding.queries import Scalar

_INT32 = struct.Struct("<i")
_FIXED = {
    0x01: 8, 0x06: 0, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16, 0x7F: 0, 0xFF: 0,
}  # fmt: skip
_LENGTH_BEFORE = {0x02: 4, 0x03: 0, 0x04: 0, 0x05: 5, 0x0C: 16, 0x0D: 4, 0x0E: 4, 0x0F: 0}  # and what it leaves out
_REGEX = 0x0B


class Unreadable(Exception):
    """These bytes are nothing that we can read; the text says why."""


class Element(NamedTuple):
    kind: int
    name: bytes
    begin: int
    value: int
    end: int


def document_end(data: bytes, at: int, end: int | None = None) -> int:
    """Where the document at `at` ends; raises if its length cannot be right."""
    limit = len(data) if end is None else end
    if not 0 <= at <= limit - 5:
        raise Unreadable("a document is cut short")
    length = _INT32.unpack_from(data, at)[0]
    if length < 5 or length > limit - at or data[at + length - 1] != 0:
        raise Unreadable("the length of a document is wrong")
    return int(at + length)


def elements(data: bytes, at: int = 0, end: int | None = None) -> Iterator[Element]:
    """The elements of the document at `at`, without those of nested documents."""
    last = document_end(data, at, end) - 1
    place = at + 4
    while place < last:
        name_end = data.find(b"\0", place + 1, last)
        if name_end < 0:
            raise Unreadable("the name of an element does not end")
        stop = _value_end(data, data[place], name_end + 1, last)
        yield Element(data[place], data[place + 1 : name_end], place, name_end + 1, stop)
        place = stop


def _value_end(data: bytes, kind: int, at: int, last: int) -> int:
    if kind in _FIXED:
        end = at + _FIXED[kind]
    elif kind in _LENGTH_BEFORE and at + 4 <= last:
        length = _INT32.unpack_from(data, at)[0]
        end = at + length + _LENGTH_BEFORE[kind] if length >= 0 else -1
    elif kind == _REGEX:
        end = data.find(b"\0", data.find(b"\0", at, last) + 1, last) + 1
    else:
        raise Unreadable(f"unknown element type {kind}")
    if not at <= end <= last:
        raise Unreadable("the length of an element is wrong")
    return end


def scalar(value: Any) -> Scalar:
    """Texts and numbers as they are; what JSON cannot express as text."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)  # Int64 is a subclass of int
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal128):
        try:
            return scalar(float(value.to_decimal()))
        except (ArithmeticError, ValueError):  # digits or an exponent that no decimal number has
            return value.bid.hex()
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, ObjectId):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, DatetimeMS):  # beyond the year 9999
        return str(int(value))
    if isinstance(value, Timestamp):
        return f"{value.time}.{value.inc}"
    if isinstance(value, bytes):
        is_uuid = isinstance(value, Binary) and value.subtype == UUID_SUBTYPE and len(value) == 16
        return str(UUID(bytes=value)) if is_uuid else value.hex()
    try:
        return json_util.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return type(value).__name__


LARGEST_QUERY = 4 << 20  # of BSON: decoded it takes some twenty times as much
_OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(
    tz_aware=True, unicode_decode_error_handler="replace", datetime_conversion=DatetimeConversion.DATETIME_AUTO
)
_ARRAY = 0x04
INSERTED = b"documents"  # the array of an insert; counted, not decoded


def decode(data: bytes, at: int = 0, end: int | None = None) -> dict[str, Any]:
    """The document between these offsets, which must be all of it."""
    stop = document_end(data, at, end)
    if end is not None and stop != end:
        raise Unreadable("there are bytes after a document")
    if stop - at > LARGEST_QUERY:
        raise Unreadable("a document is too large for a query")
    try:
        return bson.decode(data[at:stop], _OPTIONS)
    except Exception as error:  # besides InvalidBSON, anything that a type's constructor raises about its bytes
        raise Unreadable("a document is not BSON") from error


def decode_all(data: bytes, at: int, end: int) -> Iterator[dict[str, Any]]:
    """Consecutive documents, each decoded when it is reached."""
    while at < end:
        stop = document_end(data, at, end)
        yield decode(data, at, stop)
        at = stop


def count_documents(data: bytes, at: int, end: int) -> int:
    """The number of consecutive documents."""
    count = 0
    while at < end:
        at = document_end(data, at, end)
        count += 1
    return count


def decode_command(data: bytes) -> tuple[dict[str, Any], int]:
    """A command without the documents to insert, and their number: they are up to 16 MB, and private."""
    for element in elements(data):
        if element.kind == _ARRAY and element.name == INSERTED:
            count = sum(1 for _ in elements(data, element.value, element.end))
            rest = data[4 : element.begin] + data[element.end :]
            return decode(struct.pack("<i", len(rest) + 4) + rest), count
    return decode(data), 0
