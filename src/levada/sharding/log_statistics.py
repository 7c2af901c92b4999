"""Which fields are asked for, how, how often together, and which do writes change?

Source: a 2018 paper on sharding for a classified-ads site: each query is walked to its deepest level, and one is
added to every field met. Counts only: those of two halves of a log, merged, are those of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from levada.sharding.asked import AskedQuery, conditions

__all__ = ["ANY_FIELD", "FieldUse", "LogStatistics", "equality_fields"]

ANY_FIELD = "*"  # of changes: the whole document was replaced
_WRITES = frozenset(("insert", "update", "delete", "findandmodify"))
_BY_VALUE = frozenset(("eq", "in"))


class FieldUse(msgspec.Struct):
    """How often a field was asked for, by operator, and sorted by."""

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
    """`queries` are those that look for documents: all but inserts."""

    queries: int = 0
    operations: Counter[str] = msgspec.field(default_factory=Counter)
    inserted: int = 0
    fields: dict[str, FieldUse] = msgspec.field(default_factory=dict)
    combinations: Counter[tuple[str, ...]] = msgspec.field(default_factory=Counter)
    changed: Counter[str] = msgspec.field(default_factory=Counter)

    @classmethod
    def of(cls, queries: Iterable[AskedQuery]) -> LogStatistics:
        found = cls()
        for query in queries:
            found.add(query)
        return found

    def add(self, query: AskedQuery) -> None:
        times = max(query.times, 0)
        self.operations[query.op] += times
        self.inserted += times * query.inserted
        if query.op in _WRITES and query.op != "insert":
            for field in set(query.changes):
                self.changed[field] += times
        if query.op != "insert":
            self.queries += times
            self._add_filter(query, times)

    def _add_filter(self, query: AskedQuery, times: int) -> None:
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
        """Take another log's counts in."""
        self.queries += other.queries
        self.inserted += other.inserted
        self.operations.update(other.operations)
        self.combinations.update(other.combinations)
        self.changed.update(other.changed)
        for field, use in other.fields.items():
            self.fields.setdefault(field, FieldUse()).merge(use)

    def share(self, field: str) -> float:
        """Of the queries that look for documents: those that ask for this field."""
        use = self.fields.get(field)
        return use.asked / self.queries if use and self.queries else 0.0

    def by_share(self) -> list[str]:
        """The fields, those most asked for first."""
        return sorted(self.fields, key=lambda field: (-self.fields[field].asked, field))

    @property
    def updates(self) -> int:
        """Writes that change what is there."""
        return self.operations["update"] + self.operations["findandmodify"]


def equality_fields(query: AskedQuery) -> frozenset[str]:
    """The fields that a query names by value, wherever in it."""
    return frozenset(each.field for each in conditions(query.filter) if each.operator in _BY_VALUE)
