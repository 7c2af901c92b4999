"""What does a log of queries narrow, ready to be asked of many placements?

Where the log says that a value was named, but not which one (dropped or hashed), a value of the sample stands for
it, drawn by its frequency and from one document for the whole query: such queries are counted as guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

from levada.sharding.asked import AskedQuery, Condition
from levada.sharding.narrowing import Allowed, allowed_by, alternatives
from levada.sharding.placement import Placement
from levada.sharding.sample import Sample

__all__ = ["Workload"]

_HASHED = re.compile(r"#[0-9a-f]{16}")
_MOST_DRAWN = 100
_STRIDE = 2_654_435_761  # odd, and far from any period of the data: draws are spread evenly

Interned = dict[str, int]
Signature = tuple[tuple[str, int], ...]


class Workload:
    """`queries` looked for documents, `updates` changed some, `guessed` had values that the log does not tell."""

    def __init__(self, asked: Iterable[AskedQuery], sample: Sample) -> None:
        self.queries = self.updates = self.guessed = 0
        self.changes: Counter[frozenset[str]] = Counter()
        self._sample = sample
        self._drawn = 0
        self._was_guessed = False
        self._allowed: list[Allowed] = []
        self._places: dict[tuple[str, object], int] = {}
        self._asked: list[tuple[tuple[Interned, ...], int]] = []
        for query in asked:
            if query.op != "insert" and query.times > 0:
                self._take(query)

    def _take(self, query: AskedQuery) -> None:
        self.queries += query.times
        if query.changes:
            self.updates += query.times
            self.changes[frozenset(query.changes)] += query.times
        self._drawn = (self._drawn + _STRIDE) % max(self._sample.count, 1)
        self._was_guessed = False
        found = alternatives(query.filter, self._read)
        self.guessed += query.times if self._was_guessed else 0
        self._asked.append((tuple(self._interned(each) for each in found), query.times))

    def _interned(self, alternative: Any) -> Interned:
        return {field: self._place(field, allowed) for field, allowed in alternative.items()}

    def _place(self, field: str, allowed: Allowed) -> int:
        kinds = tuple(value.__class__ for value in allowed.values or ())
        known = (field, (allowed, kinds))
        place = self._places.setdefault(known, len(self._allowed))
        if place == len(self._allowed):
            self._allowed.append(allowed)
        return place

    def _read(self, condition: Condition) -> Allowed | None:
        if condition.operator not in ("eq", "in") or not condition.size:
            return allowed_by(condition)
        if condition.values and not any(isinstance(value, str) and _hidden(value) for value in condition.values):
            return allowed_by(condition)
        column = self._sample.columns.get(condition.field)
        if column is None or not column.codes:
            return None
        self._was_guessed = True
        values = [column.values[column.codes[place]] for place in self._drawn_places(condition)]
        if any(isinstance(value, list | dict) for value in values):
            return None  # no single value stands for these
        return Allowed(tuple(dict.fromkeys(values)))

    def _drawn_places(self, condition: Condition) -> list[int]:
        count = self._sample.count
        if not condition.values:
            size = min(max(condition.size, 1), _MOST_DRAWN)
            return [(self._drawn + number * _STRIDE) % count for number in range(size)]
        numbers = (
            blake2b(str(value).encode("utf-8", "surrogatepass"), digest_size=8) for value in condition.values
        )
        return [int.from_bytes(number.digest(), "big") % count for number in numbers]

    def touches(
        self, placement: Placement, locate: Callable[[Any], int | None] | None = None
    ) -> tuple[list[int], list[int]]:
        """How often each shard is touched, and how many queries touch 0, 1, 2 ... shards."""
        loads, widths = [0] * placement.shards, [0] * (placement.shards + 1)
        for shards, times in self._touched(placement, locate).items():
            widths[len(shards)] += times
            for shard in shards:
                loads[shard] += times
        return loads, widths

    def _touched(self, placement: Placement, locate: Callable[[Any], int | None] | None) -> Counter[frozenset[int]]:
        known: dict[tuple[Signature, ...], frozenset[int]] = {}
        counts: Counter[frozenset[int]] = Counter()
        first = placement.key.parts[0].field

        def shards_of(signatures: tuple[Signature, ...]) -> frozenset[int]:
            shards = known.get(signatures)
            if shards is None:
                shards = known[signatures] = self._shards(placement, signatures, locate)
            return shards

        for asked, times in self._asked:
            if len(asked) == 1 and (place := asked[0].get(first)) is not None:
                shards = shards_of((((first, place),),))
                if len(shards) <= 1:  # what the first field settles need not be looked into further
                    counts[shards] += times
                    continue
            counts[shards_of(tuple(_signature(each, placement) for each in asked))] += times
        return counts

    def _shards(
        self,
        placement: Placement,
        signatures: Sequence[Signature],
        locate: Callable[[Any], int | None] | None,
    ) -> frozenset[int]:
        found = [{field: self._allowed[place] for field, place in each} for each in signatures]
        return placement.shards_among(found, locate)

    def named(self, field: str) -> Counter[int]:
        """How often each value of the sample's field was named, by its place in the column."""
        column, counts = self._sample.columns[field], Counter[int]()
        codes: dict[int, list[int]] = {}
        for asked, times in self._asked:
            for place in {each[field] for each in asked if field in each}:
                if place not in codes:
                    codes[place] = [
                        code
                        for value in self._allowed[place].values or ()
                        if (code := column.code_of(value)) is not None
                    ]
                for code in codes[place]:
                    counts[code] += times
        return counts


def _signature(asked: Interned, placement: Placement) -> Signature:
    """What matters of a query here: the fields of the key up to the first that it does not ask for."""
    found = []
    for part in placement.key.parts:
        place = asked.get(part.field)
        if place is None:
            break
        found.append((part.field, place))
    if placement.directory and placement.directory in asked:
        found.append((placement.directory, asked[placement.directory]))
    return tuple(found)


def _hidden(value: str) -> bool:
    return _HASHED.fullmatch(value) is not None
