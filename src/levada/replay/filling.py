"""Queries to replay, with values filled in where the log has none.

An even sample of the log is replayed, each query as often as it was recorded; inserts are left out. A dropped or
hashed value is replaced by that of a document of the sample, the same document for the whole query. An id that the
sample does not hold is replaced by the next one that it holds: otherwise nearly every search for one document would
find nothing, and cost nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec

from levada.sharding.queries import Condition, Filter, QueryEntry, Scalar, conditions
from levada.sharding.sample import Sample, SampleColumn
from levada.sharding.values import encoded

_HASHED = re.compile(r"#[0-9a-f]{16}")
_STRIDE = 2_654_435_761
_MOST_DRAWN = 100
_BY_VALUE = ("eq", "in")
_WITH_VALUES = (*_BY_VALUE, "range", "prefix")


def evenly_drawn(queries: Sequence[QueryEntry], most: int) -> list[QueryEntry]:
    """An even sample in the order of the log; a query that was recorded several times counts as many."""
    searches = [query for query in queries if query.op != "insert" and query.times > 0]
    total = sum(query.times for query in searches)
    count = min(most, total)
    found: list[QueryEntry] = []
    seen = 0
    for query in searches:
        seen += query.times
        found += [query] * (seen * count // total - len(found))
    return found


def is_hidden(condition: Condition) -> bool:
    """Whether the log lacks the values of this condition."""
    if condition.operator not in _WITH_VALUES:
        return False
    return not condition.values or any(
        isinstance(value, str) and _HASHED.fullmatch(value) for value in condition.values
    )


def tells_all(query_filter: Filter | None) -> bool:
    return not any(is_hidden(each) for each in conditions(query_filter))


class ValueFiller:
    """`guessed`: queries whose values the log lacks; `renamed`: queries with an id that the sample lacks."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._ids = sample.columns[sample.id_field] if sample.id_field else None
        self._order = sorted(zip(self._ids.encodings, self._ids.values, strict=True)) if self._ids else []
        self._drawn = 0
        self._marks: set[str] = set()
        self.guessed = self.renamed = 0

    def fill(self, query: QueryEntry) -> QueryEntry:
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

    def _drawn_values(self, condition: Condition, column: SampleColumn) -> Iterator[Scalar]:
        for number in range(min(max(condition.size, len(condition.values), 1), _MOST_DRAWN)):
            yield column.values[column.codes[(self._drawn + number * _STRIDE) % self._sample.count]]

    def _held(self, value: Scalar) -> Scalar:
        if self._ids is None or self._ids.code_of(value) is not None:
            return value
        self._marks.add("renamed")
        place = bisect_left(self._order, encoded(value), key=lambda pair: pair[0])
        held: Scalar = self._order[min(place, len(self._order) - 1)][1]
        return held
