"""The base of sources that read rows one by one.

They cannot share a snapshot: each task is read at one instant, but two tasks may be read at two. A load of a table
that changes meanwhile is a mixture of its states, and its status says so (`snapshot` is empty).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from levada.bulk.entries import PlainRows
from levada.bulk.protocols import RowBatch
from levada.bulk.splitting import Cut, HashShare, Key, KeyRange, Modulus, NullKeys, RowRange, Span, TableFacts
from levada.bulk.tasks import LoadPlan
from levada.core.errors import UsageError
from levada.core.suggestions import near_names

ROW_BYTES = 256  # average size of a row of text beyond which its task counts as too big

Where = tuple[str, list[Any]]


def collected(rows: Iterable[tuple[Any, Any]], kinds: tuple[str, str], limit: int | None) -> PlainRows | None:
    """The rows without NULL values; None if they are more, or larger, than `limit` allows."""
    keys, values, nulls, room = list[Any](), list[Any](), 0, (limit or 0) * ROW_BYTES
    for key, value in rows:
        if value is None:
            nulls += 1
            continue
        keys.append(key)
        values.append(value)
        room -= len(value) if isinstance(value, str | bytes) else 0
        if limit is not None and (len(keys) > limit or room < 0):
            return None
    return PlainRows(keys, values, kinds, nulls)


def known_column(name: str, columns: Sequence[str], table: str) -> str:
    if name not in columns:
        raise UsageError(f"{table} has no column {name!r}: {near_names(name, columns)}")
    return name


class SqlSource:
    """A table behind SQL with `?`. A subclass says how it quotes, what it knows, and how rows come."""

    _plan: LoadPlan
    _named: Sequence[str]  # the table, after its schema if that was named
    _since: str | None = None

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        self._since = since
        return ""

    def facts(self) -> TableFacts:
        raise NotImplementedError

    def sample(self, span: Span, size: int) -> list[Key]:
        where, values = self._where(span)
        key = self._key()
        every = max(1, self._count(span) // size)
        statement = f"SELECT {key} FROM {self._table()} WHERE {where} ORDER BY {key}"  # noqa: S608
        return [row[0] for place, row in enumerate(self._rows(statement, values)) if place % every == 0]

    def duplicate(self) -> Key | None:
        where, values = self._where(KeyRange())
        key, value = self._key(), self._quoted(self._plan.value)
        statement = (
            f"SELECT {key} FROM {self._table()} WHERE {where} AND {value} IS NOT NULL"  # noqa: S608
            f" GROUP BY {self._exact()} HAVING count(*) > 1 LIMIT 1"
        )
        return next((row[0] for row in self._rows(statement, values)), None)

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        if isinstance(span, NullKeys):
            return self._count(span)
        where, values = self._where(span)
        statement = f"SELECT {self._key()}, {self._value()} FROM {self._table()} WHERE {where}"  # noqa: S608
        return collected(self._rows(statement, values), self._kinds(), limit)

    def _count(self, span: Span) -> int:
        where, values = self._where(span)
        statement = f"SELECT count(*) FROM {self._table()} WHERE {where}"  # noqa: S608
        return next(int(row[0]) for row in self._rows(statement, values))

    def _where(self, span: Span) -> Where:
        key = self._key()
        if isinstance(span, NullKeys):
            return f"{self._quoted(self._plan.key)} IS NULL", []
        parts, values = [f"{self._quoted(self._plan.key)} IS NOT NULL"], list[Any]()
        if isinstance(span, KeyRange):
            edges: list[tuple[Cut | None, str, str]] = [(span.low, ">", ">="), (span.high, "<=", "<")]
            for cut, after, before in edges:
                if cut is not None:
                    parts.append(f"{key} {after if cut.after else before} ?")
                    values.append(cut.key)
        elif isinstance(span, Modulus | HashShare):
            number = key if isinstance(span, Modulus) else self._hashed()
            parts.append(f"(({number} % ?) + ?) % ? = ?")
            values += [span.divisor, span.divisor, span.divisor, span.remainder]
        elif isinstance(span, RowRange):
            parts.append("rowid >= ?")
            values.append(span.first)
            if span.end is not None:
                parts.append("rowid < ?")
                values.append(span.end)
        return self._newer(" AND ".join(parts), values)

    def _newer(self, where: str, values: list[Any]) -> Where:
        if self._since is None or self._plan.watermark is None:
            return where, values
        newer, bounds = self._at_least(self._quoted(self._plan.watermark), self._since)
        if self._plan.collect:
            key = self._quoted(self._plan.key)
            newer = f"{key} IN (SELECT {key} FROM {self._table()} WHERE {newer})"  # noqa: S608
        return f"{where} AND {newer}", [*values, *bounds]

    def _at_least(self, column: str, since: str) -> Where:
        return f"{column} >= ?", [since]

    def _newest(self) -> str | None:
        if self._plan.watermark is None:
            return None
        statement = f"SELECT max({self._quoted(self._plan.watermark)}) FROM {self._table()}"  # noqa: S608
        newest = next((row[0] for row in self._rows(statement, [])), None)
        return self._since if newest is None else str(newest)

    def _table(self) -> str:
        return ".".join(self._quoted(part) for part in self._named)

    def _quoted(self, name: str) -> str:
        raise NotImplementedError

    def _key(self) -> str:
        """The key as it is read and compared, in an order in which only identical keys are equal."""
        raise NotImplementedError

    def _exact(self) -> str:
        return self._key()

    def _value(self) -> str:
        return self._quoted(self._plan.value)

    def _hashed(self) -> str:
        raise NotImplementedError

    def _kinds(self) -> tuple[str, str]:
        raise NotImplementedError

    def _rows(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        raise NotImplementedError
