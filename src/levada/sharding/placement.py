"""Placement of documents: shard keys, ranges, and the shards a query touches.

Plain parts of a key keep the order of their values, so that a range of values is a range of keys. A hashed part is
64 bits, keyed with a secret where outsiders choose the values: it has no order, and spreads what would pile up.

Ranges are cut by bounds: a key belongs to the range of the last bound that is not above it. Several ranges may have
one owner. Where the key starts with a hash, bounds depend only on the number of shards; else they come from a
sample.

Pure, and the same in the store, the advice and the laboratory. A placement can be encoded with msgspec and decoded
again.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from levada.sharding.pruning import Alternative, alternatives
from levada.sharding.queries import Filter
from levada.sharding.values import AFTER, MISSING, dig, encoded

HASH_TAG = b"\x70"


class KeyPart(msgspec.Struct, frozen=True):
    """One field of a shard key, plain or hashed."""

    field: str
    hashed: bool = False

    def __str__(self) -> str:
        return f"hash({self.field})" if self.hashed else self.field


class ShardKey(msgspec.Struct, frozen=True):
    """The fields of a key. `secret`: empty, or at most 64 bytes that outsiders lack; the same for every use."""

    parts: tuple[KeyPart, ...]
    secret: bytes = b""

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a shard key needs at least one field")
        if len({part.field for part in self.parts}) < len(self.parts):
            raise ValueError("a shard key names each field once")

    def __str__(self) -> str:
        return ", ".join(str(part) for part in self.parts)

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(part.field for part in self.parts)

    def encode(self, values: Mapping[str, Any]) -> bytes:
        """The key of a document; a missing field sorts before all values."""
        return b"".join([self.encode_part(part, dig(values, part.field)) for part in self.parts])

    def encode_part(self, part: KeyPart, value: Any) -> bytes:
        data = encoded(value)
        if not part.hashed:
            return data
        return HASH_TAG + blake2b(data, digest_size=8, key=self.secret, person=b"levada shard").digest()


_ALL = (1 << 64) - 1
_SIGN = 1 << 63


class Hashed(int):
    """The hash in a bound; the value behind it is unknown."""


def decoded_key(key: ShardKey, data: bytes) -> list[Any]:
    """The values of a bound, part by part; fewer than the key has where the bound is shorter."""
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
        return _number_back(rest)
    if kind == b"\x40":
        return rest[:1] == b"\x01", rest[1:]
    if kind in (b"\x20", b"\x30"):
        end = rest.index(b"\x00\x00")
        plain = rest[:end].replace(b"\x00\xff", b"\x00")
        return (plain.decode("utf-8", "surrogatepass") if kind == b"\x20" else plain), rest[end + 2 :]
    raise ValueError(f"no value begins with {kind.hex()}")


def _number_back(data: bytes) -> tuple[float, bytes]:
    bits = int.from_bytes(data[:8], "big")
    if not bits:
        return math.nan, data[9:]
    (value,) = struct.unpack(">d", ((bits ^ _SIGN) if bits & _SIGN else bits ^ _ALL).to_bytes(8, "big"))
    whole = int(value) if math.isfinite(value) and value == int(value) else None
    if data[8] == 0x80:
        return (value if whole is None else whole), data[9:]
    return (whole or 0) + int.from_bytes(data[9:11], "big") - 0x8000, data[11:]


class Ranges(msgspec.Struct, frozen=True):
    """Ranges of keys and their owners: `bounds` ascend, and there is one owner more than bounds."""

    bounds: tuple[bytes, ...]
    owners: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.owners) != len(self.bounds) + 1:
            raise ValueError(f"{len(self.bounds)} bounds make {len(self.bounds) + 1} ranges, not {len(self.owners)}")
        if any(low >= high for low, high in zip(self.bounds, self.bounds[1:], strict=False)):
            raise ValueError("the bounds of ranges must ascend")
        if min(self.owners) < 0:
            raise ValueError("shards are numbered from 0")

    def shard_of(self, key: bytes) -> int:
        return self.owners[bisect_right(self.bounds, key)]

    def shards_of(self, low: bytes, high: bytes) -> frozenset[int]:
        """The owners of the keys from `low` to `high`, without `high`."""
        first, last = bisect_right(self.bounds, low), bisect_left(self.bounds, high)
        return frozenset(self.owners[first : last + 1]) if low < high else frozenset()

    def each(self) -> Iterator[tuple[bytes, bytes | None, int]]:
        """Lowest key, end (None: open) and owner of each range."""
        yield from zip((b"", *self.bounds), (*self.bounds, None), self.owners, strict=True)


class Move(msgspec.Struct, frozen=True):
    """Keys from `low` to `high`, without `high` (None: to the end), go from one shard to another."""

    low: bytes
    high: bytes | None
    source: int
    target: int


def even_ranges(shards: int, per_shard: int = 1) -> Ranges:
    """Ranges of equal width for a key that starts with a hash; neighbours go to one shard."""
    count = shards * per_shard
    bounds = tuple(HASH_TAG + (number * (1 << 64) // count).to_bytes(8, "big") for number in range(1, count))
    return Ranges(bounds, tuple(number // per_shard for number in range(count)))


def resized_ranges(old: Ranges, owners: Sequence[int]) -> Ranges:
    """Ranges of a hashed key with an equal share for each of these owners, moving as little as possible.

    Who owned keys before and is among the owners keeps them up to its new share; only the rest moves. A range within
    one hash has no width, and stays where it is if it can.
    """
    shares = {
        owner: (1 << 64) * (place + 1) // len(owners) - (1 << 64) * place // len(owners)
        for place, owner in enumerate(owners)
    }
    left = dict(shares)
    pieces: list[tuple[bytes, int, int, int | None]] = []  # its start, also as a number, its end, who keeps it
    for low, high, owner in old.each():
        start, end = _position(low), (1 << 64) if high is None else _position(high)
        kept = min(end - start, left.get(owner, 0))
        if owner in left:
            left[owner] -= kept
        if kept or (start == end and owner in left):
            pieces.append((low, start, start + kept, owner))
        if kept < end - start:
            pieces.append((low if not kept else _bound(start + kept), start + kept, end, None))
        elif start == end and owner not in left:
            pieces.append((low, start, end, None))
    needing = [owner for owner in owners if left[owner]]
    bounds: list[bytes] = []
    new: list[int] = []

    def add(low: bytes, owner: int) -> None:
        if new and new[-1] == owner:
            return
        if new:
            bounds.append(low)
        new.append(owner)

    for low, start, end, keeper in pieces:
        if keeper is not None:
            add(low, keeper)
            continue
        if start == end:
            add(low, needing[0] if needing else owners[-1])
        while start < end:
            owner = needing[0]
            taken = min(end - start, left[owner])
            add(low, owner)
            left[owner] -= taken
            start += taken
            if start < end:
                low = _bound(start)
            if not left[owner]:
                needing.pop(0)
    return Ranges(tuple(bounds), tuple(new))


def _position(bound: bytes) -> int:
    """The hash at which a range begins, as a number."""
    return int.from_bytes(bound[1:9].ljust(8, b"\0"), "big")


def _bound(position: int) -> bytes:
    return HASH_TAG + position.to_bytes(8, "big")


def quantile_ranges(keys: Iterable[bytes], shards: int) -> Ranges:
    """Ranges with equally many of these keys, as far as equal keys allow: a shard may get none."""
    ordered = sorted(keys)
    cuts = [ordered[number * len(ordered) // shards] for number in range(1, shards)] if ordered else []
    bounds: list[bytes] = []
    owners = [0]
    for number, cut in enumerate(cuts, 1):
        if cut > (bounds[-1] if bounds else ordered[0]):
            bounds.append(cut)
            owners.append(number)
    return Ranges(tuple(bounds), tuple(owners))


def moved(old: Ranges, new: Ranges) -> tuple[Move, ...]:
    """The ranges that change their owner, neighbours joined."""
    moves: list[Move] = []
    bounds = sorted({*old.bounds, *new.bounds})
    for low, high in zip((b"", *bounds), (*bounds, None), strict=True):
        source, target = old.shard_of(low), new.shard_of(low)
        if source == target:
            continue
        last = moves[-1] if moves else None
        if last is not None and (last.high, last.source, last.target) == (low, source, target):
            moves[-1] = Move(last.low, high, source, target)
        else:
            moves.append(Move(low, high, source, target))
    return tuple(moves)


class CutValue(msgspec.Struct, frozen=True):
    """A value in pieces: one owner more than `cuts`, which are values of the fields after the first."""

    value: Any
    cuts: tuple[tuple[Any, ...], ...]
    owners: tuple[int, ...]


class ValueLayout(msgspec.Struct, frozen=True):
    """The first field's values by shard. `whole[i]`: the values that live on shard i alone."""

    whole: tuple[tuple[Any, ...], ...]
    cut: tuple[CutValue, ...]


def layout_of(placement: Placement, values: Iterable[Any]) -> ValueLayout:
    """A placement by ranges of hashes, for an engine with another hash: the known values by their shard, and the
    few that are cut by what follows them in the key. The engine's own hash places all other values."""
    whole: list[list[Any]] = [[] for _ in range(placement.shards)]
    cut: list[CutValue] = []
    key, bounds = placement.key, placement.ranges.bounds
    for value in values:
        start = key.encode_part(key.parts[0], value)
        first, last = bisect_right(bounds, start), bisect_right(bounds, start + AFTER)
        owners = placement.ranges.owners[first : last + 1]
        if len(set(owners)) == 1:
            whole[owners[0]].append(value)
        else:
            cuts = tuple(tuple(decoded_key(key, bound)[1:]) for bound in bounds[first:last])
            cut.append(CutValue(value, cuts, owners))
    return ValueLayout(tuple(map(tuple, whole)), tuple(cut))


_MOST_PREFIXES = 1_000
Locate = Callable[[Any], int | None]


class Zone(msgspec.Struct, frozen=True):
    """A value of the key's first field that is so frequent or so much queried that several shards share it."""

    value: Any
    shards: tuple[int, ...]


class Placement(msgspec.Struct, frozen=True):
    """A key, its ranges and their shards. `directory`: the field whose values a directory maps to shards ("":
    none)."""

    key: ShardKey
    ranges: Ranges
    shards: int
    directory: str = ""
    zones: tuple[Zone, ...] = ()

    def __post_init__(self) -> None:
        if self.shards < 1:
            raise ValueError(f"documents need at least one shard, not {self.shards}")
        if max(self.ranges.owners) >= self.shards:
            raise ValueError(f"a range belongs to shard {max(self.ranges.owners)} of {self.shards}")

    def place(self, values: Mapping[str, Any]) -> int:
        """The shard of a document: 0 to shards - 1."""
        return self.ranges.shard_of(self.key.encode(values))

    def shards_for(self, query: Filter | None, locate: Locate | None = None) -> frozenset[int]:
        """The shards that may hold what the filter finds: none is missed, and none is named without need.

        `locate` looks a value's shard up in the directory; None: no document has the value.
        """
        return self.shards_among(alternatives(query), locate)

    def shards_among(self, found: Sequence[Alternative], locate: Locate | None = None) -> frozenset[int]:
        """`shards_for` a filter whose alternatives are known."""
        touched: set[int] = set()
        for alternative in found:
            touched |= self._shards_of(alternative, locate)
            if len(touched) == self.shards:
                break
        return frozenset(touched)

    def _shards_of(self, alternative: Alternative, locate: Locate | None) -> frozenset[int]:
        by_key = self._by_key(alternative)
        named = alternative.get(self.directory) if self.directory and locate is not None else None
        if named is None or named.values is None or locate is None or len(by_key) == 1:
            return by_key
        return by_key & {shard for value in named.values if (shard := locate(value)) is not None}

    def _by_key(self, alternative: Alternative) -> frozenset[int]:
        starts = [b""]
        for part in self.key.parts:
            allowed = alternative.get(part.field)
            if allowed is None:
                break
            if allowed.values is None:
                return self._between(starts) if part.hashed else self._between(starts, allowed.low, allowed.high)
            if len(starts) * len(allowed.values) > _MOST_PREFIXES:
                break
            ends = {self.key.encode_part(part, value) for value in allowed.values}
            starts = [start + end for start in starts for end in ends]
        return self._between(starts)

    def _between(self, starts: Sequence[bytes], low: bytes = b"", high: bytes = AFTER) -> frozenset[int]:
        return frozenset().union(*(self.ranges.shards_of(start + low, start + high) for start in starts))


def hashed_placement(field: str, shards: int, *, rest: Sequence[str] = (), secret: bytes = b"") -> Placement:
    """A hashed field, others after it, and equal ranges: it needs no data."""
    parts = (KeyPart(field, hashed=True), *(KeyPart(name) for name in rest))
    return Placement(ShardKey(parts, secret), even_ranges(shards), shards)
