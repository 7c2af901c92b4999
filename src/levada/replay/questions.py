"""Recorded queries as SQL for one shard.

A condition that SQL cannot express does not filter: then more rows are found, and none is missed. Below a negation
that would be reversed, so there a part is left out as soon as anything in it cannot be expressed.

Tables of a replay hold each field as the bytes by which a placement orders values (`levada.sharding.values`): any
mixture of types has one order there, and a missing value can be searched for. `number` counts the documents in the
order of their inserts. A query without an order returns the newest first; writes become searches for what they
would change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from levada.sharding.pruning import allowed_by
from levada.sharding.queries import AllOf, AnyOf, Condition, Filter, NoneOf, QueryEntry
from levada.sharding.values import AFTER, MISSING, encoded

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
    joined = _joined(known, " AND " if isinstance(node, AllOf) else " OR ")
    if joined is None or not isinstance(node, NoneOf):
        return joined
    return SqlText(f"NOT {joined.words}", joined.values)


def _joined(parts: Sequence[SqlText[Value]], word: str) -> SqlText[Value] | None:
    if not parts:
        return None
    return SqlText(
        f"({word.join(part.words for part in parts)})", tuple(each for part in parts for each in part.values)
    )


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
