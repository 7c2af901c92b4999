"""Workload of a query log: field statistics, and queries prepared for many placements.

Source: a 2018 paper on sharding for a classified-ads site: each query is walked to its deepest level, and one is
added to every field in it. Statistics are counts: those of two halves of a log, merged, are those of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from levada.sharding.placement import Placement
from levada.sharding.pruning import Allowed, allowed_by, alternatives
from levada.sharding.queries import BY_VALUE, Condition, QueryEntry, conditions, is_hidden
from levada.sharding.sample import Sample

ANY_FIELD = "*"  # of changes: the whole document was replaced
_WRITES = frozenset(("insert", "update", "delete", "findandmodify"))


class FieldUse(msgspec.Struct):
    """How many queries filter by a field, by operator, and how many sort by it."""

    asked: int = 0
    sorted: int = 0
    operators: Counter[str] = msgspec.field(default_factory=Counter)

    def merge(self, other: FieldUse) -> None:
        self.asked += other.asked
        self.sorted += other.sorted
        self.operators.update(other.operators)

    @property
    def by_value(self) -> int:
        """Conditions that name values, which a hash can serve too."""
        return self.operators["eq"] + self.operators["in"]


class LogStatistics(msgspec.Struct):
    """Counts of a query log. `queries` are those that look for documents: all but inserts."""

    queries: int = 0
    operations: Counter[str] = msgspec.field(default_factory=Counter)
    inserted: int = 0
    fields: dict[str, FieldUse] = msgspec.field(default_factory=dict)
    combinations: Counter[tuple[str, ...]] = msgspec.field(default_factory=Counter)
    changed: Counter[str] = msgspec.field(default_factory=Counter)

    @classmethod
    def of(cls, queries: Iterable[QueryEntry]) -> LogStatistics:
        found = cls()
        for query in queries:
            found.add(query)
        return found

    def add(self, query: QueryEntry) -> None:
        times = max(query.times, 0)
        self.operations[query.op] += times
        self.inserted += times * query.inserted
        if query.op in _WRITES and query.op != "insert":
            for field in set(query.changes):
                self.changed[field] += times
        if query.op != "insert":
            self.queries += times
            self._add_filter(query, times)

    def _add_filter(self, query: QueryEntry, times: int) -> None:
        operators: dict[str, set[str]] = {}
        for condition in conditions(query.filter):
            operators.setdefault(condition.field, set()).add(condition.operator)
        for field, used in operators.items():
            use = self.fields.setdefault(field, FieldUse())
            use.asked += times
            for operator in used:
                use.operators[operator] += times
        self.combinations[tuple(sorted(operators))] += times
        for field in {each.field for each in query.sort}:
            self.fields.setdefault(field, FieldUse()).sorted += times

    def merge(self, other: LogStatistics) -> None:
        """Add the counts of another log."""
        self.queries += other.queries
        self.inserted += other.inserted
        self.operations.update(other.operations)
        self.combinations.update(other.combinations)
        self.changed.update(other.changed)
        for field, use in other.fields.items():
            self.fields.setdefault(field, FieldUse()).merge(use)

    def share(self, field: str) -> float:
        """The share of the queries that filter by this field."""
        use = self.fields.get(field)
        return use.asked / self.queries if use and self.queries else 0.0

    def by_share(self) -> list[str]:
        """The fields, the most queried first."""
        return sorted(self.fields, key=lambda field: (-self.fields[field].asked, field))

    @property
    def updates(self) -> int:
        """Writes that change existing documents."""
        return self.operations["update"] + self.operations["findandmodify"]


def equality_fields(query: QueryEntry) -> frozenset[str]:
    """The fields that a query names by value, at any level."""
    return frozenset(each.field for each in conditions(query.filter) if each.operator in BY_VALUE)


_MOST_DRAWN = 100
STRIDE = 2_654_435_761  # odd, and far from any period of the data: draws are spread evenly
Interned = dict[str, int]
Signature = tuple[tuple[str, int], ...]


def drawn_places(first: int, size: int, count: int) -> list[int]:
    """Documents of a sample of `count` whose values stand for `size` unknown ones."""
    return [(first + number * STRIDE) % count for number in range(min(max(size, 1), _MOST_DRAWN))]


class Workload:
    """Queries of a log, pruned once and then placed many times.

    `queries` look for documents, `updates` change some. Where the log lacks a value (dropped or hashed), a value of
    the sample stands for it, drawn by its frequency and from one document for the whole query: `guessed` counts
    these queries.
    """

    def __init__(self, queries: Iterable[QueryEntry], sample: Sample) -> None:
        self.queries = self.updates = self.guessed = 0
        self.changes: Counter[frozenset[str]] = Counter()
        self._sample = sample
        self._drawn = 0
        self._was_guessed = False
        self._allowed: list[Allowed] = []
        self._places: dict[tuple[str, object], int] = {}
        self._pruned: list[tuple[tuple[Interned, ...], int]] = []
        for query in queries:
            if query.op != "insert" and query.times > 0:
                self._take(query)

    def _take(self, query: QueryEntry) -> None:
        self.queries += query.times
        if query.changes:
            self.updates += query.times
            self.changes[frozenset(query.changes)] += query.times
        self._drawn = (self._drawn + STRIDE) % max(self._sample.count, 1)
        self._was_guessed = False
        found = alternatives(query.filter, self._read)
        self.guessed += query.times if self._was_guessed else 0
        places = tuple({field: self._place(field, allowed) for field, allowed in each.items()} for each in found)
        self._pruned.append((places, query.times))

    def _place(self, field: str, allowed: Allowed) -> int:
        kinds = tuple(value.__class__ for value in allowed.values or ())
        known = (field, (allowed, kinds))
        place = self._places.setdefault(known, len(self._allowed))
        if place == len(self._allowed):
            self._allowed.append(allowed)
        return place

    def _read(self, condition: Condition) -> Allowed | None:
        if condition.operator not in BY_VALUE or not condition.size or not is_hidden(condition):
            return allowed_by(condition)
        column = self._sample.columns.get(condition.field)
        if column is None or not column.codes:
            return None
        self._was_guessed = True
        values = [column.values[column.codes[place]] for place in self._drawn_places(condition)]
        if any(isinstance(value, list | dict) for value in values):
            return None  # no single value can stand for these
        return Allowed(tuple(dict.fromkeys(values)))

    def _drawn_places(self, condition: Condition) -> list[int]:
        if not condition.values:
            return drawn_places(self._drawn, condition.size, self._sample.count)
        numbers = (blake2b(str(value).encode("utf-8", "surrogatepass"), digest_size=8) for value in condition.values)
        return [int.from_bytes(number.digest(), "big") % self._sample.count for number in numbers]

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
                found = [{field: self._allowed[place] for field, place in each} for each in signatures]
                shards = known[signatures] = placement.shards_among(found, locate)
            return shards

        for query, times in self._pruned:
            if len(query) == 1 and (place := query[0].get(first)) is not None:
                shards = shards_of((((first, place),),))
                if len(shards) <= 1:  # the first field decides alone
                    counts[shards] += times
                    continue
            counts[shards_of(tuple(_signature(each, placement) for each in query))] += times
        return counts

    def named(self, field: str) -> Counter[int]:
        """How often each value of the sample's field was named, by its place in the column."""
        column, counts = self._sample.columns[field], Counter[int]()
        codes: dict[int, list[int]] = {}
        for query, times in self._pruned:
            for place in {each[field] for each in query if field in each}:
                if place not in codes:
                    found = map(column.code_of, self._allowed[place].values or ())
                    codes[place] = [code for code in found if code is not None]
                for code in codes[place]:
                    counts[code] += times
        return counts


def _signature(query: Interned, placement: Placement) -> Signature:
    """The part of a query that matters for this key: its fields up to the first that the query does not name."""
    found = []
    for part in placement.key.parts:
        place = query.get(part.field)
        if place is None:
            break
        found.append((part.field, place))
    if placement.directory and placement.directory in query:
        found.append((placement.directory, query[placement.directory]))
    return tuple(found)
