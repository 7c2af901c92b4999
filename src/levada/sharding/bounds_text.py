"""Which values does a bound of a range stand for? The encoding of a key, read backwards."""

from __future__ import annotations

import math
import struct
from typing import Any

from levada.sharding.keys import HASH_TAG, ShardKey
from levada.sharding.values import MISSING

__all__ = ["Hashed", "decoded_key"]

_ALL = (1 << 64) - 1
_SIGN = 1 << 63


class Hashed(int):
    """A hash, where a bound has one: its value cannot be told."""


def decoded_key(key: ShardKey, data: bytes) -> list[Any]:
    """The values of a bound, part by part; fewer than the key has where the bound ends before."""
    found: list[Any] = []
    for _ in key.parts:
        if not data:
            break
        value, data = _decoded(data)
        found.append(value)
    return found


def _decoded(data: bytes) -> tuple[Any, bytes]:
    kind, rest = data[:1], data[1:]
    if kind == HASH_TAG:
        return Hashed(int.from_bytes(rest[:8].ljust(8, b"\x00"), "big")), rest[8:]
    if kind in (b"\x01", b"\x02"):
        return (MISSING if kind == b"\x01" else None), rest
    if kind == b"\x10":
        return _number(rest)
    if kind == b"\x40":
        return rest[:1] == b"\x01", rest[1:]
    if kind in (b"\x20", b"\x30"):
        end = rest.index(b"\x00\x00")
        plain = rest[:end].replace(b"\x00\xff", b"\x00")
        return (plain.decode("utf-8", "surrogatepass") if kind == b"\x20" else plain), rest[end + 2 :]
    raise ValueError(f"no value begins with {kind.hex()}")


def _number(data: bytes) -> tuple[float, bytes]:
    bits = int.from_bytes(data[:8], "big")
    if not bits:
        return math.nan, data[9:]
    (value,) = struct.unpack(">d", ((bits ^ _SIGN) if bits & _SIGN else bits ^ _ALL).to_bytes(8, "big"))
    whole = int(value) if math.isfinite(value) and value == int(value) else None
    if data[8] == 0x80:
        return (value if whole is None else whole), data[9:]
    return (whole or 0) + int.from_bytes(data[9:11], "big") - 0x8000, data[11:]
