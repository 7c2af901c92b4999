"""Which shard owns which range of keys?

Ranges are cut by bounds: a key belongs to the range of the last bound that is not above it. Several ranges may have
one owner. Bounds come from nothing but the number of shards where the key begins with a hash, else from a sample.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from levada.sharding.keys import HASH_TAG

__all__ = ["Move", "Ranges", "even_ranges", "moved", "quantile_ranges"]


class Ranges(msgspec.Struct, frozen=True):
    """`bounds` ascend, and there is one owner more than bounds."""

    bounds: tuple[bytes, ...]
    owners: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.owners) != len(self.bounds) + 1:
            raise ValueError(
                f"{len(self.bounds)} bounds make {len(self.bounds) + 1} ranges, not {len(self.owners)}"
            )
        if any(low >= high for low, high in zip(self.bounds, self.bounds[1:], strict=False)):
            raise ValueError("the bounds of ranges must ascend")
        if min(self.owners) < 0:
            raise ValueError("shards are numbered from 0")

    def shard_of(self, key: bytes) -> int:
        return self.owners[bisect_right(self.bounds, key)]

    def shards_of(self, low: bytes, high: bytes) -> frozenset[int]:
        """The owners of the keys from `low` until before `high`."""
        first, last = bisect_right(self.bounds, low), bisect_left(self.bounds, high)
        return frozenset(self.owners[first : last + 1]) if low < high else frozenset()

    def each(self) -> Iterator[tuple[bytes, bytes | None, int]]:
        """Lowest key, end (None: open) and owner of every range."""
        yield from zip((b"", *self.bounds), (*self.bounds, None), self.owners, strict=True)


class Move(msgspec.Struct, frozen=True):
    """Keys from `low` until before `high` (None: to the end) go from one shard to another."""

    low: bytes
    high: bytes | None
    source: int
    target: int


def even_ranges(shards: int, per_shard: int = 1) -> Ranges:
    """Ranges of equal width for a key that begins with a hash; neighbours go to one shard."""
    count = shards * per_shard
    bounds = tuple(HASH_TAG + (number * (1 << 64) // count).to_bytes(8, "big") for number in range(1, count))
    return Ranges(bounds, tuple(number // per_shard for number in range(count)))


def quantile_ranges(keys: Iterable[bytes], shards: int) -> Ranges:
    """Ranges that hold equally many of these keys, as far as equal keys allow: shards may be left without one."""
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
    """The ranges that change their owner, neighbours as one."""
    moves: list[Move] = []
    for low, high in _pieces(old.bounds, new.bounds):
        source, target = old.shard_of(low), new.shard_of(low)
        if source == target:
            continue
        last = moves[-1] if moves else None
        if last is not None and (last.high, last.source, last.target) == (low, source, target):
            moves[-1] = Move(last.low, high, source, target)
        else:
            moves.append(Move(low, high, source, target))
    return tuple(moves)


def _pieces(one: Sequence[bytes], other: Sequence[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
    bounds = sorted({*one, *other})
    yield from zip((b"", *bounds), (*bounds, None), strict=True)
