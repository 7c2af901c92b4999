"""The base of sources that read rows one by one.

They cannot share a snapshot: each task is read at one instant, but two tasks may be read at two. A load of a table
that changes meanwhile is a mixture of its states, and its status says so (`snapshot` is empty).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from levada.bulk.entries import PlainRows
from levada.bulk.protocols import RowBatch
from levada.bulk.splitting import (
    BlockRange,
    Cut,
    HashShare,
    Key,
    KeyRange,
    Modulus,
    NullKeys,
    RowRange,
    Span,
)
from levada.bulk.tasks import LoadPlan
from levada.core.errors import LevadaError, UsageError
from levada.core.suggestions import near_names

ROW_BYTES = 256  # average size of a row of text beyond which its task counts as too big

Where = tuple[str, list[Any]]
_NAME_OR_MARK = re.compile(r'`[^`]*`|"[^"]*"|\?')


def kinds_of(whole_key: bool, whole_value: bool) -> tuple[str, str]:
    """The kinds of key and value, by whether each is a 64-bit integer."""
    return "int" if whole_key else "text", "int" if whole_value else "any"


def marked(statement: str) -> str:
    """The statement with `%s` for `?`; a quoted name may contain either."""
    return _NAME_OR_MARK.sub(lambda found: "%s" if found[0] == "?" else found[0], statement.replace("%", "%%"))


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
    _types: Mapping[str, Any]  # of its columns
    _since: str | None = None
    _quote = '"'
    _as_text = ""  # what makes a value text

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        self._since = since
        return ""

    def sample(self, span: Span, size: int) -> list[Key]:
        where, values = self._where(span)
        key = self._key()
        every = max(1, self._count(span) // size)
        statement = f"SELECT {key} FROM {self._table()} WHERE {where} ORDER BY {key}"  # noqa: S608
        return [row[0] for row in islice(self._rows(statement, values), 0, None, every)]

    def duplicate(self) -> Key | None:
        where, values = self._where(KeyRange())
        value = self._quoted(self._plan.value)
        statement = (
            f"SELECT {self._read_key()} FROM {self._table()} WHERE {where} AND {value} IS NOT NULL"  # noqa: S608
            f" GROUP BY {self._exact()} HAVING count(*) > 1 LIMIT 1"
        )
        return next((row[0] for row in self._rows(statement, values)), None)

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        if isinstance(span, NullKeys):
            return self._count(span)
        where, values = self._where(span)
        statement = f"SELECT {self._read_key()}, {self._read_value()} FROM {self._table()} WHERE {where}"  # noqa: S608
        return collected(self._streamed(statement, values), self._kinds(), limit)

    def close(self) -> None:
        raise NotImplementedError

    def _find_table(self, candidates: Iterable[Sequence[str]], tables: str, *values: str) -> None:
        """Take the first of these names that a table has; `tables` asks for the names of all, for the message."""
        plan = self._plan
        try:
            for named in candidates:
                if types := self._columns(named):
                    for column in (plan.key, plan.value, *([plan.watermark] if plan.watermark else [])):
                        self._check_column(column, types)
                    self._named, self._types = named, types
                    return
            near = near_names(plan.table, [str(row[0]) for row in self._rows(tables, values)])
            raise UsageError(f"there is no table or view {plan.table!r}: {near}")
        except LevadaError:
            self.close()
            raise

    def _columns(self, named: Sequence[str]) -> Mapping[str, Any]:
        """The types of a table's columns; none if there is no such table."""
        raise NotImplementedError

    def _check_column(self, name: str, columns: Mapping[str, Any]) -> None:
        known_column(name, list(columns), self._plan.table)

    def _count(self, span: Span) -> int:
        where, values = self._where(span)
        statement = f"SELECT count(*) FROM {self._table()} WHERE {where}"  # noqa: S608
        return next(int(row[0]) for row in self._rows(statement, values))

    def _where(self, span: Span) -> Where:
        key = self._key()
        if isinstance(span, NullKeys):
            return f"{self._quoted(self._plan.key)} IS NULL", []
        parts, values = [f"{self._quoted(self._plan.key)} IS NOT NULL"] if self._nullable() else [], list[Any]()
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
        elif isinstance(span, RowRange | BlockRange):
            for sign, bound in ((">=", span.first), ("<", span.end)):
                if bound is not None:
                    column, value = self._place(bound)
                    parts.append(f"{column} {sign} ?")
                    values.append(value)
        return self._newer(" AND ".join(parts) or "true", values)

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
        newest = f"max({self._quoted(self._plan.watermark)}){self._as_text}"
        statement = f"SELECT {newest} FROM {self._table()}"  # noqa: S608
        found = next((row[0] for row in self._rows(statement, [])), None)
        return self._since if found is None else str(found)

    def _table(self) -> str:
        return ".".join(self._quoted(part) for part in self._named)

    def _quoted(self, name: str) -> str:
        return self._quote + name.replace(self._quote, 2 * self._quote) + self._quote

    def _nullable(self) -> bool:
        return True

    def _place(self, number: int) -> tuple[str, Any]:
        """The column that numbers rows or blocks, and the value in it where this one begins."""
        return "rowid", number

    def _key(self) -> str:
        """The key as it is compared, in an order in which only identical keys are equal."""
        raise NotImplementedError

    def _read_key(self) -> str:
        return self._key()

    def _exact(self) -> str:
        return self._key()

    def _read_value(self) -> str:
        return self._quoted(self._plan.value)

    def _hashed(self) -> str:
        raise NotImplementedError

    def _kinds(self) -> tuple[str, str]:
        raise NotImplementedError

    def _rows(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        raise NotImplementedError

    def _streamed(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        """The same for rows that may not fit into memory."""
        return self._rows(statement, values)
