"""Queries to replay: a sample of the log, values where it has none, and the SQL for one shard.

An even sample of the log is replayed, each query as often as it was recorded; inserts are left out. A dropped or
hashed value is replaced by that of a document of the sample, the same document for the whole query. An id that the
sample does not hold is replaced by the next one that it holds: otherwise nearly every search for one document would
find nothing, and cost nothing.

A condition that SQL cannot express does not filter: then more rows are found, and none is missed. Below a negation
that would be reversed, so there a part is left out as soon as anything in it cannot be expressed.

Tables of a replay hold each field as the bytes by which a placement orders values (`levada.sharding.values`): any
mixture of types has one order there, and a missing value can be searched for. `number` counts the documents in the
order of their inserts. A query without an order returns the newest first; writes become searches for what they
would change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from levada.sharding.pruning import allowed_by
from levada.sharding.queries import (
    BY_VALUE,
    AllOf,
    AnyOf,
    Condition,
    Filter,
    NoneOf,
    QueryEntry,
    Scalar,
    conditions,
    is_hidden,
    with_conditions,
)
from levada.sharding.sample import Sample
from levada.sharding.values import AFTER, MISSING, encoded
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


_MOST_LEVELS = 100
Value = TypeVar("Value")


class SqlText(NamedTuple, Generic[Value]):
    """SQL with %s for each of the `values`."""

    words: str
    values: tuple[Value, ...] = ()


Sayer: TypeAlias = Callable[[Condition], SqlText[Value] | None]


def where(wanted: Filter | None, say: Sayer[Value]) -> SqlText[Value]:
    """The condition after WHERE. `say` writes one condition, or returns None if it cannot."""
    text = None if wanted is None else _written(wanted, say, 0, exactly=False)
    return text or SqlText("true")


def _written(node: Filter, say: Sayer[Value], level: int, *, exactly: bool) -> SqlText[Value] | None:
    if level > _MOST_LEVELS:
        return None
    if isinstance(node, Condition):
        return say(node)
    below = exactly or isinstance(node, NoneOf)
    parts = [_written(each, say, level + 1, exactly=below) for each in node.of]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) and (exactly or isinstance(node, AnyOf)):
        return None
    if not known:
        return None
    joined = (" AND " if isinstance(node, AllOf) else " OR ").join(part.words for part in known)
    negation = "NOT " if isinstance(node, NoneOf) else ""
    return SqlText(f"{negation}({joined})", tuple(value for part in known for value in part.values))


TABLE = "{table}"  # the placeholder of the shard's own table
_LONGEST_STORED = 200  # bytes; an index of PostgreSQL takes 2,700 of a row
_MOST_VALUES = 1_000  # of one condition
_WRITES = ("update", "delete", "findandmodify")


class Question(NamedTuple):
    """A query in SQL. `descending`: for each column of the order; `counts`: only the number of documents."""

    filter: Filter | None
    sql: str
    parameters: tuple[bytes, ...]
    descending: tuple[bool, ...]
    limit: int
    counts: bool


class QuestionWriter:
    """`columns` says where a field is kept; `loosened` counts queries with a condition that SQL cannot express."""

    def __init__(self, columns: dict[str, str], limit: int) -> None:
        self._columns = columns
        self._limit = limit
        self._known: dict[str, str] = {}
        self.loosened = 0

    def write(self, query: QueryEntry) -> Question:
        unannounced: list[str] = []
        found = where(query.filter, partial(self._written, unannounced))
        self.loosened += bool(unannounced)
        condition = _numbered(found.words)
        if query.op == "count":
            sql = f"SELECT count(*) FROM {TABLE} WHERE {condition}"  # noqa: S608
            return Question(query.filter, self._same(sql), found.values, (), 1, True)
        order = [(self._columns[each.field], each.ascending) for each in query.sort if each.field in self._columns]
        limit = 1 if query.op in _WRITES and not query.many else query.limit or self._limit
        fetched = ", ".join(["number", *(column for column, _ in order), "document"])
        ways = [*(f"{column} {'ASC' if up else 'DESC'}" for column, up in order), "number DESC"]
        sql = f"SELECT {fetched} FROM {TABLE} WHERE {condition} ORDER BY {', '.join(ways)} LIMIT {limit:d}"  # noqa: S608
        return Question(query.filter, self._same(sql), found.values, tuple(not up for _, up in order), limit, False)

    def _same(self, sql: str) -> str:
        """One text for all queries of a shape."""
        return self._known.setdefault(sql, sql)

    def _written(self, unannounced: list[str], condition: Condition) -> SqlText[bytes] | None:
        column = self._columns.get(condition.field)
        text = None if column is None else _comparison(column, condition)
        if text is None:
            unannounced.append(condition.field)
        return text


def _comparison(column: str, condition: Condition) -> SqlText[bytes] | None:
    if condition.operator == "exists" and condition.values == (True,):
        return SqlText(f"{column} > %s", (encoded(MISSING),))
    allowed = allowed_by(condition)
    if allowed is None:
        return None
    if allowed.values is not None:
        return _among(column, [stored(value) for value in allowed.values])
    return SqlText(f"({column} >= %s AND {column} < %s)", (_cut(allowed.low), _cut_after(allowed.high)))


def _among(column: str, values: Sequence[bytes]) -> SqlText[bytes] | None:
    different = list(dict.fromkeys(values))
    if len(different) == 1:
        return SqlText(f"{column} = %s", (different[0],))
    if len(different) > _MOST_VALUES:
        return None
    # fewer different statements
    padded = different + different[-1:] * ((1 << (len(different) - 1).bit_length()) - len(different))
    return SqlText(f"{column} IN ({', '.join(['%s'] * len(padded))})", tuple(padded))


def _numbered(words: str) -> str:
    """$1, $2 ... in place of psycopg's marks; no name here holds a mark of its own."""
    first, *others = words.split("%s")
    return first + "".join(f"${number}{rest}" for number, rest in enumerate(others, 1))


def stored(value: Any) -> bytes:
    """The bytes of a value in a table and in a query."""
    data = encoded(value)
    if len(data) <= _LONGEST_STORED:
        return data
    return _cut(data) + blake2b(data, digest_size=16).digest()  # equal values stay equal, others in order or nearly


def _cut(data: bytes) -> bytes:
    return data[: _LONGEST_STORED - 20]


def _cut_after(data: bytes) -> bytes:
    """A bound that no shortened value before it exceeds."""
    return data if len(data) <= _LONGEST_STORED - 20 else _cut(data) + AFTER * 20
