"""Which values of the key's first field live whole on one shard, and which are cut over several?

What a placement by ranges of hashes means for an engine that hashes in another way: the values that were seen are
listed by their shard, the few that are cut are cut by what follows them in the key, and the engine's own hash
takes the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import msgspec

from levada.sharding.bounds_text import decoded_key
from levada.sharding.placement import Placement
from levada.sharding.values import AFTER

__all__ = ["CutValue", "Layout", "layout_of"]


class CutValue(msgspec.Struct, frozen=True):
    """`owners` of the pieces of a value, one more than `cuts`, which are values of the fields after the first."""

    value: Any
    cuts: tuple[tuple[Any, ...], ...]
    owners: tuple[int, ...]


class Layout(msgspec.Struct, frozen=True):
    """`whole[i]`: the values that live on shard i alone."""

    whole: tuple[tuple[Any, ...], ...]
    cut: tuple[CutValue, ...]


def layout_of(placement: Placement, values: Iterable[Any]) -> Layout:
    whole: list[list[Any]] = [[] for _ in range(placement.shards)]
    cut: list[CutValue] = []
    for value in values:
        pieces = _pieces(placement, value)
        if len(set(pieces.owners)) == 1:
            whole[pieces.owners[0]].append(value)
        else:
            cut.append(pieces)
    return Layout(tuple(map(tuple, whole)), tuple(cut))


def _pieces(placement: Placement, value: Any) -> CutValue:
    start = placement.key.encode_part(placement.key.parts[0], value)
    bounds, owners = placement.ranges.bounds, placement.ranges.owners
    first, last = bisect_right(bounds, start), bisect_right(bounds, start + AFTER)
    cuts = tuple(tuple(decoded_key(placement.key, bound)[1:]) for bound in bounds[first:last])
    return CutValue(value, cuts, owners[first : last + 1])
