"""Entries of a map: encoding, collecting and digests of rows.

An integer key is eight bytes that sort as it does, a text key its UTF-8. Integer values are packed: one byte with
their width (1, 2, 4 or 8 bytes), then one after the other, little-endian; a single value is packed alone. Anything
else is MessagePack. Nothing here can become code.

Each row (key, value) becomes a 64-bit number. The digest is their sum modulo 2^64, so tasks can be added up in any
order, and a missing, doubled or changed row shows. It guards against accidents, not against attackers. The
arithmetic is MurmurHash3's finaliser, which arrays can compute as well (`levada.bulk.sources.packed`).

Rows of one key are collected into one value, in sorted order so that the same rows always give the same bytes.
Without `collect` a second row of a key is an error: neither is the right one.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from sys import byteorder
from typing import Any
from zlib import crc32

import msgspec

from levada.core.errors import Refused, StoreDamaged, UsageError

Value = Any  # anything that MessagePack can hold
SIGN = 1 << 63
_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
_KEY = struct.Struct(">Q")


def encoded_key(key: int | str, kind: str) -> bytes:
    if kind == "int":
        try:
            return _KEY.pack(int(key) + SIGN)
        except (ValueError, struct.error) as error:
            raise UsageError(f"{str(key)[:80]!r} is not a 64-bit integer key") from error
    return str(key).encode("utf-8", "surrogatepass")


def decoded_key(data: bytes, kind: str) -> int | str:
    try:
        return int(_KEY.unpack(data)[0]) - SIGN if kind == "int" else data.decode("utf-8", "surrogatepass")
    except (ValueError, struct.error) as error:
        raise StoreDamaged("a key of the map cannot be read: load it again") from error


def width_of(low: int, high: int) -> int:
    """The number of bytes that hold every integer from `low` to `high`."""
    return next(width for width in _CODES if -(1 << (8 * width - 1)) <= low and high < 1 << (8 * width - 1))


def encoded_values(values: Sequence[Value], kind: str) -> bytes:
    """The bytes of `values` in order; a map that does not collect has one."""
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
        raise StoreDamaged("a value of the map cannot be read: load it again") from error
    if byteorder == "big":
        packed.byteswap()
    return packed.tolist()


def bucket_of(key: bytes, kind: str, buckets: int) -> int:
    """The bucket of a key. Keys of one bucket live on one node of a cluster, so one command can write them."""
    if buckets == 1:
        return 0
    return (mixed(_KEY.unpack(key)[0]) if kind == "int" else crc32(key)) % buckets


def bucket_tag(bucket: int, buckets: int) -> bytes:
    """The part in braces by which a Redis cluster places a key."""
    return b"{%03x}" % bucket if buckets > 1 else b""


def redis_string(data: bytes) -> bytes:
    """A bulk string of the Redis protocol."""
    return b"$%d\r\n%b\r\n" % (len(data), data)


MASK = (1 << 64) - 1
ROW = 0x9E3779B97F4A7C15  # so that (a, b) and (b, a) differ


def mixed(number: int) -> int:
    """A 64-bit number with all its bits mixed."""
    number &= MASK
    number = ((number ^ (number >> 33)) * 0xFF51AFD7ED558CCD) & MASK
    number = ((number ^ (number >> 33)) * 0xC4CEB9FE1A85EC53) & MASK
    return number ^ (number >> 33)


def number_of(value: Any) -> int:
    """The value itself if it is a 64-bit integer, otherwise a hash of its encoding."""
    if isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63:
        return value & MASK
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else msgspec.msgpack.encode(value)
    return int.from_bytes(blake2b(data, digest_size=8, person=b"levada row").digest(), "little")


def row_digest(key: Any, value: Any) -> int:
    return mixed(mixed(number_of(key)) * 3 + mixed(number_of(value) ^ ROW))


def rows_digest(rows: Iterable[tuple[Any, Any]]) -> int:
    return sum(row_digest(key, value) for key, value in rows) & MASK


class DuplicateKey(Refused):
    """A key with several rows in a map that does not collect."""

    def __init__(self, key: object) -> None:
        super().__init__(
            f"key {str(key)[:80]!r} has several rows: collect them with --collect, or choose a key that is unique"
        )


class PlainEntries:
    """Entries as pairs of bytes."""

    def __init__(self, pairs: list[tuple[bytes, bytes]], key_kind: str) -> None:
        self._pairs = pairs
        self.key_kind = key_kind

    def __len__(self) -> int:
        return len(self._pairs)

    def pairs(self) -> Sequence[tuple[bytes, bytes]]:
        return self._pairs

    def strings(self, prefix: bytes, buckets: int) -> Iterator[tuple[int, int, bytes]]:
        for key, value in self.pairs():
            bucket = bucket_of(key, self.key_kind, buckets)
            yield bucket, 1, redis_string(prefix + bucket_tag(bucket, buckets) + key) + redis_string(value)


class PlainRows:
    """Rows as Python objects, for any type. Arrays of integers are several times faster."""

    def __init__(
        self, keys: Sequence[Any], values: Sequence[Any], kinds: tuple[str, str], null_values: int = 0
    ) -> None:
        self._rows = list(zip(keys, values, strict=True))
        self._kinds = kinds
        self.null_values = null_values

    def __len__(self) -> int:
        return len(self._rows)

    def digest(self) -> int:
        return rows_digest(self._rows)

    def entries(self, collect: bool) -> PlainEntries:
        gathered: dict[Any, list[Any]] = {}
        for key, value in self._rows:
            gathered.setdefault(key, []).append(value)
        if not collect and len(gathered) < len(self._rows):
            raise DuplicateKey(next(key for key, values in gathered.items() if len(values) > 1))
        key_kind, value_kind = self._kinds
        pairs = [(encoded_key(key, key_kind), _encoded(values, value_kind)) for key, values in gathered.items()]
        return PlainEntries(pairs, key_kind)


def _encoded(values: list[Any], kind: str) -> bytes:
    if len(values) > 1:
        values.sort(key=lambda value: (str(type(value)), value))
    return encoded_values(values, kind)
