"""Tables of SQLite files."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from levada.bulk.protocols import Away
from levada.bulk.sources.rows import SqlSource, Where, kinds_of
from levada.bulk.splitting import TableFacts, hash_of
from levada.bulk.tasks import LoadPlan
from levada.core.errors import LevadaError, NotFound

_PATIENCE = 30.0


class SqliteSource(SqlSource):
    """A table of a SQLite file."""

    def __init__(self, path: Path, plan: LoadPlan) -> None:
        self._plan = plan
        self._found: tuple[str, str] | None = None
        if not path.exists():
            raise NotFound(f"there is no file {path}")
        address = f"file:{quote(str(path.absolute()))}?mode=ro"
        self._base = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)
        self._base.create_function("levada_hash", 1, hash_of, deterministic=True)
        known = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        self._find_table([[plan.table], [plan.table.removeprefix("main.")]], known)

    def facts(self) -> TableFacts:
        key_kind, value_kind = self._kinds()
        return TableFacts(
            next(int(row[0]) for row in self._rows(f"SELECT count(*) FROM {self._table()}", [])),  # noqa: S608
            key_kind,
            value_kind,
            indexed=key_kind == "int" and self._indexed(),
            blocks=self._last_row(),
            numbered=True,
            unique=True,
            newest=self._newest(),
        )

    def close(self) -> None:
        self._base.close()

    def _columns(self, named: Sequence[str]) -> dict[str, str]:
        statement = f"PRAGMA table_xinfo({self._quoted(named[0])})"
        return {row[1]: str(row[2]).upper() for row in self._rows(statement, [])}

    def _indexed(self) -> bool:
        statement = f"SELECT 1 FROM {self._table()} WHERE {self._quoted(self._plan.key)} < 1"  # noqa: S608
        plan = self._rows(f"EXPLAIN QUERY PLAN {statement}", [])
        return any("SEARCH" in str(row[3]) for row in plan)

    def _last_row(self) -> int | None:
        """The number after the last row; None if rows have no numbers, or negative ones."""
        if not self._numbered():
            return None
        low, high = next(self._rows(f"SELECT min(rowid), max(rowid) FROM {self._table()}", []))  # noqa: S608
        return None if low is not None and low < 0 else (high or 0) + 1

    def _numbered(self) -> bool:
        """Whether rows are numbered. Only a plain table does that: a view answers with NULL, and a column of this
        name with itself."""
        if "rowid" in (name.lower() for name in self._types):
            return False
        statement = "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"
        stored = any(row[0] for row in self._rows(statement, self._named))
        return stored and not self._without_rowid()

    def _without_rowid(self) -> bool:
        try:
            self._base.execute(f"SELECT rowid FROM {self._table()} LIMIT 0").close()  # noqa: S608
        except sqlite3.OperationalError as error:
            return error.sqlite_errorcode == sqlite3.SQLITE_ERROR  # the table exists and has no such column
        return False

    def _at_least(self, column: str, since: str) -> Where:
        """Compare numbers as numbers: in a column without a type, every number is below any text."""
        number = f"typeof({column}) IN ('integer', 'real') AND {column} >= ?"
        return f"({column} >= ? OR ({number}))", [since, _number(since)]

    def _key(self) -> str:
        name = self._quoted(self._plan.key)
        return name if self._kinds()[0] == "int" else f"CAST({name} AS TEXT) COLLATE BINARY"

    def _hashed(self) -> str:
        return f"levada_hash({self._key()})"

    def _kinds(self) -> tuple[str, str]:
        """Checked by what is stored too: a column declared INTEGER may hold anything."""
        if self._found is None:
            self._found = kinds_of(self._whole(self._plan.key), self._whole(self._plan.value))
        return self._found

    def _whole(self, name: str) -> bool:
        other = f"typeof({self._quoted(name)}) NOT IN ('integer', 'null')"
        statement = f"SELECT 1 FROM {self._table()} WHERE {other} LIMIT 1"  # noqa: S608
        return "INT" in self._types[name] and not any(self._rows(statement, []))

    def _rows(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        cursor = self._base.cursor()
        try:
            yield from cursor.execute(statement, values)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Away(f"{self._plan.source} is locked by another program") from error
            raise LevadaError(f"{self._plan.table} in {self._plan.source} cannot be read: {error}") from error
        except sqlite3.DatabaseError as error:
            raise LevadaError(f"{self._plan.source} cannot be read: {error}") from error
        finally:
            cursor.close()


def _number(since: str) -> float:
    """The number, or one below all numbers: then the newest value was a text, and new numbers are not known."""
    with suppress(ValueError):
        whole = int(since)
        return whole if -(2**63) <= whole < 2**63 else -math.inf
    with suppress(ValueError):
        number = float(since)
        return number if math.isfinite(number) else -math.inf
    return -math.inf
