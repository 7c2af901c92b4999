"""Which elements does a BSON document have, without decoding any of them?

Source: the BSON specification 1.1, bsonspec.org.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from levada.adapters.mongodb.frames import Unreadable

__all__ = ["Element", "document_end", "elements"]

_INT32 = struct.Struct("<i")
_FIXED = {
    0x01: 8, 0x06: 0, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16, 0x7F: 0, 0xFF: 0,
}  # fmt: skip
_LENGTH_BEFORE = {0x02: 4, 0x03: 0, 0x04: 0, 0x05: 5, 0x0C: 16, 0x0D: 4, 0x0E: 4, 0x0F: 0}  # and what it leaves out
_REGEX = 0x0B


class Element(NamedTuple):
    kind: int
    name: bytes
    begin: int
    value: int
    end: int


def document_end(data: bytes, at: int, end: int | None = None) -> int:
    """Where the document that begins at `at` ends, if it can be believed."""
    limit = len(data) if end is None else end
    if not 0 <= at <= limit - 5:
        raise Unreadable("a document is cut short")
    length = _INT32.unpack_from(data, at)[0]
    if length < 5 or length > limit - at or data[at + length - 1] != 0:
        raise Unreadable("the length of a document is a lie")
    return int(at + length)


def elements(data: bytes, at: int = 0, end: int | None = None) -> Iterator[Element]:
    """The elements of the document at `at`, not those of documents inside it."""
    last = document_end(data, at, end) - 1
    place = at + 4
    while place < last:
        name_end = data.find(b"\0", place + 1, last)
        if name_end < 0:
            raise Unreadable("the name of an element has no end")
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
        raise Unreadable(f"no element is of kind {kind}")
    if not at <= end <= last:
        raise Unreadable("the length of an element is a lie")
    return end
