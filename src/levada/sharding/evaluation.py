"""What would a placement make of these queries and these documents?

The figures of the model: shards per query, how evenly queries, documents and inserts fall, what updates would
move, which chunks could not be split, and the capacity: queries by the touches of the busiest shard, so that one
node is 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from levada.sharding.keys import ShardKey
from levada.sharding.placement import Placement
from levada.sharding.sample import Sample
from levada.sharding.values import encoded
from levada.sharding.workload import Workload

__all__ = ["CHUNKS_PER_SHARD", "Evaluator", "Figures", "max_by_mean"]

CHUNKS_PER_SHARD = 16  # what is more than a shard's sixteenth and has one key can be neither split nor evened out
_NEWEST = 10  # one document in so many, the last ones of the sample, stands for the inserts
_MOVED_TRIALS = 500


class Figures(msgspec.Struct, frozen=True):
    """Shares are 0 to 1; `max_mean` is the busiest or fullest shard by the mean."""

    shards_per_query: float
    single_shard: float
    load_max_mean: float
    storage_max_mean: float
    insert_max_mean: float
    moved: float  # of the updates: documents that they would send to another shard
    unsplittable: int
    capacity: float
    loads: tuple[float, ...]  # each shard's share of the touches
    storage: tuple[float, ...]  # and of the documents


class Evaluator:
    """Keeps what placements of the same key have in common."""

    def __init__(self, workload: Workload, sample: Sample) -> None:
        self.workload = workload
        self.sample = sample
        self._keys: dict[ShardKey, list[bytes]] = {}

    def keys(self, key: ShardKey) -> list[bytes]:
        """The key of every document."""
        if key not in self._keys:
            columns = [self.sample.columns[part.field] for part in key.parts]
            ends = [
                [key.encode_part(part, value) for value in column.values] if part.hashed else column.encodings
                for part, column in zip(key.parts, columns, strict=True)
            ]
            pieces = (map(end.__getitem__, column.codes) for end, column in zip(ends, columns, strict=True))
            self._keys[key] = [b"".join(each) for each in zip(*pieces, strict=True)]
        return self._keys[key]

    def figures(self, placement: Placement) -> Figures:
        keys = self.keys(placement.key)
        homes = list(map(placement.ranges.shard_of, keys))
        loads, widths = self.workload.touches(placement, self._locator(placement, homes))
        queries = max(self.workload.queries, 1)
        storage = _tally(homes, placement.shards)
        newest = homes[-max(1, len(homes) // _NEWEST) :]
        return Figures(
            shards_per_query=sum(loads) / queries,
            single_shard=(widths[0] + widths[1]) / queries,
            load_max_mean=max_by_mean(loads),
            storage_max_mean=max_by_mean(storage),
            insert_max_mean=max_by_mean(_tally(newest, placement.shards)),
            moved=self._moved(placement),
            unsplittable=_unsplittable(keys, placement.shards),
            capacity=self.workload.queries / max(loads) if max(loads) else float(placement.shards),
            loads=_shares(loads),
            storage=_shares(storage),
        )

    def _locator(self, placement: Placement, homes: Sequence[int]) -> Callable[[Any], int | None] | None:
        """The directory, as far as the sample knows the ids; another document stands for the others."""
        if not placement.directory:
            return None
        column = self.sample.columns[placement.directory]
        known = dict(zip(column.codes, homes, strict=True))

        def locate(value: Any) -> int | None:
            code = column.code_of(value)
            return known[code] if code is not None else homes[_number(value) % len(homes)] if homes else None

        return locate

    def _moved(self, placement: Placement) -> float:
        """Updates tell which fields they change, not to what: another document's values stand for the new ones."""
        own = set(placement.key.fields)
        moved = 0.0
        for changes, times in self.workload.changes.items():
            changed = changes & own
            if changed and self.sample.count:
                moved += times * self._chance(placement, changed)
        return moved / self.workload.updates if self.workload.updates else 0.0

    def _chance(self, placement: Placement, changed: frozenset[str]) -> float:
        count = self.sample.count
        trials = min(_MOVED_TRIALS, count)
        step = max(1, count // trials)
        away = 0
        for number in range(trials):
            old = self.sample.document(number * step, placement.key.fields)
            new = {**old, **self.sample.document((number * step * 7 + count // 2) % count, changed)}
            away += placement.place(old) != placement.place(new)
        return away / trials


def max_by_mean(values: Sequence[float]) -> float:
    return max(values) * len(values) / sum(values) if sum(values) else 1.0


def _tally(homes: Sequence[int], shards: int) -> list[int]:
    counts = Counter(homes)
    return [counts[shard] for shard in range(shards)]


def _shares(values: Sequence[float]) -> tuple[float, ...]:
    total = sum(values) or 1.0
    return tuple(value / total for value in values)


def _unsplittable(keys: Sequence[bytes], shards: int) -> int:
    largest = max(1.0, len(keys) / (shards * CHUNKS_PER_SHARD))
    return sum(count > largest for count in Counter(keys).values())


def _number(value: Any) -> int:
    return int.from_bytes(encoded(value)[-8:], "big") * 2_654_435_761 >> 16
