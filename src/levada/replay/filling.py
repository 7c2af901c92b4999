"""Queries to replay, with values filled in where the log has none.

An even sample of the log is replayed, each query as often as it was recorded; inserts are left out. A dropped or
hashed value is replaced by that of a document of the sample, the same document for the whole query. An id that the
sample does not hold is replaced by the next one that it holds: otherwise nearly every search for one document would
find nothing, and cost nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from levada.sharding.queries import (
    BY_VALUE,
    Condition,
    Filter,
    QueryEntry,
    Scalar,
    conditions,
    is_hidden,
    with_conditions,
)
from levada.sharding.sample import Sample
from levada.sharding.values import encoded
from levada.sharding.workload import STRIDE, drawn_places


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
        self._drawn = (self._drawn + STRIDE) % max(self._sample.count, 1)
        self._marks.clear()
        if query.filter is None:
            return query
        filled = with_conditions(query.filter, self._condition)
        self.guessed += "guessed" in self._marks
        self.renamed += "renamed" in self._marks
        return msgspec.structs.replace(query, filter=filled) if self._marks else query

    def _condition(self, condition: Condition) -> Condition:
        if is_hidden(condition):
            self._marks.add("guessed")
            column = self._sample.columns.get(condition.field)
            if condition.operator not in BY_VALUE or column is None or not column.codes:
                return msgspec.structs.replace(condition, values=())
            places = drawn_places(self._drawn, max(condition.size, len(condition.values)), self._sample.count)
            return msgspec.structs.replace(condition, values=tuple(column.values[column.codes[at]] for at in places))
        if self._ids is None or condition.field != self._sample.id_field or condition.operator not in BY_VALUE:
            return condition
        values = tuple(self._held(value) for value in condition.values)
        return msgspec.structs.replace(condition, values=values) if values != condition.values else condition

    def _held(self, value: Scalar) -> Scalar:
        if self._ids is None or self._ids.code_of(value) is not None:
            return value
        self._marks.add("renamed")
        place = bisect_left(self._order, encoded(value), key=lambda pair: pair[0])
        held: Scalar = self._order[min(place, len(self._order) - 1)][1]
        return held
