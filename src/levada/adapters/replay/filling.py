"""Which queries of a log are replayed, and what stands for values that it does not tell?

So many of them, evenly from the whole, as often as they were asked; inserts are left out. Where a value was dropped
or hashed, that of a document of the sample stands for it, the same document for the whole query. Where an id is
named that the sample does not hold (it is a sample), the next one that it holds stands for it: else nearly every
search for one document would find nothing, and cost nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec

from levada.sharding.asked import AskedQuery, Condition, Filter, Scalar, conditions
from levada.sharding.sample import Column, Sample
from levada.sharding.values import encoded

__all__ = ["StandIns", "evenly_drawn", "is_hidden", "tells_all"]

_HASHED = re.compile(r"#[0-9a-f]{16}")
_STRIDE = 2_654_435_761
_MOST_DRAWN = 100
_BY_VALUE = ("eq", "in")
_WITH_VALUES = (*_BY_VALUE, "range", "prefix")


def evenly_drawn(queries: Sequence[AskedQuery], most: int) -> list[AskedQuery]:
    """In the order of the log; one that was asked several times stands for as many."""
    asked = [query for query in queries if query.op != "insert" and query.times > 0]
    total = sum(query.times for query in asked)
    count = min(most, total)
    found: list[AskedQuery] = []
    seen = 0
    for query in asked:
        seen += query.times
        found += [query] * (seen * count // total - len(found))
    return found


def is_hidden(condition: Condition) -> bool:
    """Does the log not tell the values that were asked for?"""
    if condition.operator not in _WITH_VALUES:
        return False
    return not condition.values or any(_is_hash(value) for value in condition.values)


def tells_all(asked: Filter | None) -> bool:
    return not any(is_hidden(each) for each in conditions(asked))


class StandIns:
    """`guessed`: queries with values that the log does not tell; `renamed`: with an id that the sample has not."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._ids = sample.columns[sample.id_field] if sample.id_field else None
        self._order = sorted(zip(self._ids.encodings, self._ids.values, strict=True)) if self._ids else []
        self._drawn = 0
        self._marks: set[str] = set()
        self.guessed = self.renamed = 0

    def fill(self, query: AskedQuery) -> AskedQuery:
        self._drawn = (self._drawn + _STRIDE) % max(self._sample.count, 1)
        self._marks.clear()
        if query.filter is None:
            return query
        filled = self._filled(query.filter)
        self.guessed += "guessed" in self._marks
        self.renamed += "renamed" in self._marks
        return msgspec.structs.replace(query, filter=filled) if self._marks else query

    def _filled(self, node: Filter) -> Filter:
        if isinstance(node, Condition):
            return self._condition(node)
        return type(node)(tuple(self._filled(each) for each in node.of))

    def _condition(self, condition: Condition) -> Condition:
        if is_hidden(condition):
            self._marks.add("guessed")
            column = self._sample.columns.get(condition.field)
            if condition.operator not in _BY_VALUE or column is None or not column.codes:
                return msgspec.structs.replace(condition, values=())
            return msgspec.structs.replace(condition, values=tuple(self._drawn_values(condition, column)))
        if self._ids is None or condition.field != self._sample.id_field or condition.operator not in _BY_VALUE:
            return condition
        values = tuple(self._held(value) for value in condition.values)
        return msgspec.structs.replace(condition, values=values) if values != condition.values else condition

    def _drawn_values(self, condition: Condition, column: Column) -> Iterator[Scalar]:
        for number in range(min(max(condition.size, len(condition.values), 1), _MOST_DRAWN)):
            yield column.values[column.codes[(self._drawn + number * _STRIDE) % self._sample.count]]

    def _held(self, value: Scalar) -> Scalar:
        if self._ids is None or self._ids.code_of(value) is not None:
            return value
        self._marks.add("renamed")
        place = bisect_left(self._order, encoded(value), key=lambda pair: pair[0])
        held: Scalar = self._order[min(place, len(self._order) - 1)][1]
        return held


def _is_hash(value: Scalar) -> bool:
    return isinstance(value, str) and _HASHED.fullmatch(value) is not None
