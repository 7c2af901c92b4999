"""What stands in these bytes of BSON?

Bytes of a stranger: lengths are compared with what is there before anything is read, and a document that is larger
than a question has any reason to be is not decoded at all. Documents to be inserted are counted, never decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import bson
from bson.codec_options import CodecOptions, DatetimeConversion

from levada.adapters.mongodb.elements import document_end, elements
from levada.adapters.mongodb.frames import Unreadable

__all__ = ["LARGEST_QUESTION", "Documents", "count_documents", "decode", "decode_without"]

LARGEST_QUESTION = 4 << 20  # of BSON: decoded it takes some twenty times as much
_OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(
    tz_aware=True, unicode_decode_error_handler="replace", datetime_conversion=DatetimeConversion.DATETIME_AUTO
)
_ARRAY = 0x04


def decode(data: bytes, at: int = 0, end: int | None = None) -> dict[str, Any]:
    """The document between these places, which must be the whole of it."""
    stop = document_end(data, at, end)
    if end is not None and stop != end:
        raise Unreadable("there is something behind a document")
    if stop - at > LARGEST_QUESTION:
        raise Unreadable("a document is too large for a question")
    try:
        return bson.decode(data[at:stop], _OPTIONS)
    except Exception as error:  # besides InvalidBSON whatever a type's constructor finds wrong with its bytes
        raise Unreadable("a document is no BSON") from error


class Documents:
    """Documents that stand one behind the other, each decoded only when it is its turn."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data = data
        self._at = at
        self._end = end

    def __iter__(self) -> Iterator[dict[str, Any]]:
        at = self._at
        while at < self._end:
            stop = document_end(self._data, at, self._end)
            yield decode(self._data, at, stop)
            at = stop


def count_documents(data: bytes, at: int, end: int) -> int:
    """How many documents stand one behind the other."""
    count = 0
    while at < end:
        at = document_end(data, at, end)
        count += 1
    return count


def decode_without(data: bytes, array: bytes) -> tuple[dict[str, Any], int]:
    """A command without one of its arrays, and how many elements that array has.

    An insert carries its documents there, up to 16 MB of them, and they are nobody's business.
    """
    for element in elements(data):
        if element.kind == _ARRAY and element.name == array:
            count = sum(1 for _ in elements(data, element.value, element.end))
            rest = data[4 : element.begin] + data[element.end :]
            return decode(struct.pack("<i", len(rest) + 4) + rest), count
    return decode(data), 0
