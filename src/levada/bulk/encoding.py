"""How do keys and values look in the map?

An integer key is eight bytes that sort as it does, a text key its UTF-8. Integer values are packed: one byte that
says how wide they are (1, 2, 4 or 8 bytes), then one after the other, little end first; of a single value there is
one. Anything else is MessagePack. Nothing here can become code.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from sys import byteorder
from typing import Any

import msgspec

from levada.bulk.digest import mixed
from levada.errors import StoreDamaged, UsageError

__all__ = [
    "SIGN",
    "Value",
    "bucket_of",
    "decoded_key",
    "decoded_values",
    "encoded_key",
    "encoded_values",
    "width_of",
]

Value = Any  # whatever MessagePack can hold

SIGN = 1 << 63
_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
_KEY = struct.Struct(">Q")


def encoded_key(key: int | str, kind: str) -> bytes:
    if kind == "int":
        try:
            return _KEY.pack(int(key) + SIGN)
        except (ValueError, struct.error) as error:
            raise UsageError(f"{str(key)[:80]!r} is no integer key of 64 bits") from error
    return str(key).encode("utf-8", "surrogatepass")


def decoded_key(data: bytes, kind: str) -> int | str:
    try:
        return int(_KEY.unpack(data)[0]) - SIGN if kind == "int" else data.decode("utf-8", "surrogatepass")
    except (ValueError, struct.error) as error:
        raise StoreDamaged("a key of the map is not readable: load it again") from error


def width_of(low: int, high: int) -> int:
    """The bytes that hold every integer from `low` to `high`."""
    return next(width for width in _CODES if -(1 << (8 * width - 1)) <= low and high < 1 << (8 * width - 1))


def encoded_values(values: Sequence[Value], kind: str) -> bytes:
    """`values` in order; of a map that does not collect, one."""
    if kind != "int":
        return msgspec.msgpack.encode(values)
    width = width_of(min(values), max(values))
    packed = array(_CODES[width], values)
    if byteorder == "big":
        packed.byteswap()
    return bytes((width,)) + packed.tobytes()


def decoded_values(data: bytes, kind: str) -> list[Value]:
    try:
        if kind != "int":
            return msgspec.msgpack.decode(data, type=list)
        packed = array(_CODES[data[0]])
        packed.frombytes(data[1:])
    except (ValueError, KeyError, IndexError, msgspec.MsgspecError) as error:
        raise StoreDamaged("a value of the map is not readable: load it again") from error
    if byteorder == "big":
        packed.byteswap()
    return packed.tolist()


def bucket_of(key: bytes, kind: str, buckets: int) -> int:
    """Keys of one bucket live on one node of a cluster, so that they can be written by one command."""
    from zlib import crc32

    if buckets == 1:
        return 0
    return (mixed(_KEY.unpack(key)[0]) if kind == "int" else crc32(key)) % buckets
