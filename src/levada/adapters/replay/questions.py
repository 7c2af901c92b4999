"""What is a shard asked, so that a recorded query is answered?

Tables of a replay hold each field as the bytes by which a placement orders values (`levada.sharding.values`): any
mixture of kinds has one order there, and what is missing can be asked for. `number` counts the documents in the
order of their inserts. A query that names no order wants the newest first; writes are asked as the search for what
they would change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from levada.adapters.replay.conditions_sql import Said, where
from levada.sharding.asked import AskedQuery, Condition, Filter
from levada.sharding.narrowing import allowed_by
from levada.sharding.values import AFTER, MISSING, encoded

__all__ = ["TABLE", "Question", "QuestionWriter", "stored"]

TABLE = "{table}"  # in the SQL of a question: where the shard's own table is named
_LONGEST_STORED = 200  # bytes; an index of PostgreSQL takes 2,700 of a row
_MOST_VALUES = 1_000  # of one condition
_WRITES = ("update", "delete", "findandmodify")


class Question(NamedTuple):
    """`descending`: for each column of the order, before the newest first; `counts`: only how many there are."""

    asked: Filter | None
    sql: str
    parameters: tuple[bytes, ...]
    descending: tuple[bool, ...]
    limit: int
    counts: bool


class QuestionWriter:
    """`columns` says where a field is kept; `loosened` counts queries with a condition that could not be said."""

    def __init__(self, columns: dict[str, str], limit: int) -> None:
        self._columns = columns
        self._limit = limit
        self._known: dict[str, str] = {}
        self.loosened = 0

    def write(self, query: AskedQuery) -> Question:
        unsaid: list[str] = []
        found = where(query.filter, partial(self._said, unsaid))
        self.loosened += bool(unsaid)
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

    def _said(self, unsaid: list[str], condition: Condition) -> Said[bytes] | None:
        column = self._columns.get(condition.field)
        said = None if column is None else _worded(column, condition)
        if said is None:
            unsaid.append(condition.field)
        return said


def _worded(column: str, condition: Condition) -> Said[bytes] | None:
    if condition.operator == "exists" and condition.values == (True,):
        return Said(f"{column} > %s", (encoded(MISSING),))
    allowed = allowed_by(condition)
    if allowed is None:
        return None
    if allowed.values is not None:
        return _among(column, [stored(value) for value in allowed.values])
    return Said(f"({column} >= %s AND {column} < %s)", (_cut(allowed.low), _cut_after(allowed.high)))


def _among(column: str, values: Sequence[bytes]) -> Said[bytes] | None:
    different = list(dict.fromkeys(values))
    if len(different) == 1:
        return Said(f"{column} = %s", (different[0],))
    if len(different) > _MOST_VALUES:
        return None
    padded = different + different[-1:] * (_next_power(len(different)) - len(different))  # fewer texts of SQL
    return Said(f"{column} IN ({', '.join(['%s'] * len(padded))})", tuple(padded))


def _numbered(words: str) -> str:
    """$1, $2 ... for what psycopg would number; no name here holds a sign of its own."""
    first, *others = words.split("%s")
    return first + "".join(f"${number}{rest}" for number, rest in enumerate(others, 1))


def stored(value: Any) -> bytes:
    """The bytes that stand for a value in a table and in a question."""
    data = encoded(value)
    if len(data) <= _LONGEST_STORED:
        return data
    return _cut(data) + blake2b(data, digest_size=16).digest()  # equal values stay equal, others in order or nearly


def _cut(data: bytes) -> bytes:
    return data[: _LONGEST_STORED - 20]


def _cut_after(data: bytes) -> bytes:
    """An end that whatever was shortened before it does not pass."""
    return data if len(data) <= _LONGEST_STORED - 20 else _cut(data) + AFTER * 20


def _next_power(count: int) -> int:
    return 1 << (count - 1).bit_length()
