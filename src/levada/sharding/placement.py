"""On which shard does a document live, and which shards must a query touch?

Pure, and the same everywhere: in the store, the advice and the laboratory. A placement can be written with msgspec
and read again; `ShardKey`, `Ranges` and what cuts them are had from here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from levada.sharding.asked import Filter
from levada.sharding.keys import KeyPart, ShardKey
from levada.sharding.narrowing import Allowed, Alternative, alternatives
from levada.sharding.ranges import Move, Ranges, even_ranges, moved, quantile_ranges
from levada.sharding.values import AFTER

__all__ = [
    "KeyPart",
    "Move",
    "Placement",
    "Ranges",
    "ShardKey",
    "Zone",
    "even_ranges",
    "hashed_placement",
    "moved",
    "quantile_ranges",
]

_MOST_PREFIXES = 1_000

Locate = Callable[[Any], int | None]


class Zone(msgspec.Struct, frozen=True):
    """A value of the key's first field that is so frequent or so much asked for that several shards share it."""

    value: Any
    shards: tuple[int, ...]


class Placement(msgspec.Struct, frozen=True):
    """`directory`: the field whose values a directory leads to their shard, besides the key ("": none)."""

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

    def shards_for(self, asked: Filter | None, locate: Locate | None = None) -> frozenset[int]:
        """The shards that may hold what the filter finds: none is missed, and none is named without need.

        `locate` asks the directory for a value's shard; None: no document has it.
        """
        return self.shards_among(alternatives(asked), locate)

    def shards_among(self, found: Sequence[Alternative], locate: Locate | None = None) -> frozenset[int]:
        """The same, for a filter whose alternatives are known already."""
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
                return self._between(starts, b"", AFTER) if part.hashed else self._within(starts, allowed)
            if len(starts) * len(allowed.values) > _MOST_PREFIXES:
                break
            ends = {self.key.encode_part(part, value) for value in allowed.values}
            starts = [start + end for start in starts for end in ends]
        return self._between(starts, b"", AFTER)

    def _within(self, starts: Sequence[bytes], allowed: Allowed) -> frozenset[int]:
        return self._between(starts, allowed.low, allowed.high) if allowed.low < allowed.high else frozenset()

    def _between(self, starts: Sequence[bytes], low: bytes, high: bytes) -> frozenset[int]:
        touched: set[int] = set()
        for start in starts:
            touched |= self.ranges.shards_of(start + low, start + high)
        return frozenset(touched)


def hashed_placement(field: str, shards: int, *, rest: Sequence[str] = (), secret: bytes = b"") -> Placement:
    """A hashed field, others after it, and equal ranges: needs no data."""
    parts = (KeyPart(field, hashed=True), *(KeyPart(name) for name in rest))
    return Placement(ShardKey(parts, secret), even_ranges(shards), shards)
