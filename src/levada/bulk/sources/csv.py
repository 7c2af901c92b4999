"""CSV files, copied once into a SQLite file of their own.

All fields are text; a column whose every value is a 64-bit integer is read as integers. An empty field is NULL. The
rows of a key may stand anywhere, so without an index each task would have to read all of them. The copy is on disk,
has no name, and ends with the process, however that ends. Each instance makes its own.
"""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from levada.bulk.sources.rows import SqlSource, kinds_of, known_column
from levada.bulk.splitting import TableFacts, hash_of
from levada.bulk.tasks import LoadPlan
from levada.core.errors import LevadaError, NotFound, StoreFull, UsageError

LONGEST_FIELD = 64 << 20  # characters: an unclosed quote must not fill the memory


def allow_long_fields() -> None:
    """Set the limit for all readers of the process: `csv` has only one."""
    csv.field_size_limit(LONGEST_FIELD)


_TYPES = {"int": "INTEGER", "text": "TEXT", "any": "TEXT"}
_QUICK = (  # nobody else sees the copy, and nobody needs it after a crash
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA cache_size = -8000",
)


class CsvSource(SqlSource):
    """A CSV file."""

    def __init__(self, path: Path, plan: LoadPlan) -> None:
        if not path.exists():
            raise NotFound(f"there is no file {path}")
        if plan.watermark is not None:
            raise UsageError("a CSV file is always loaded whole: omit --watermark")
        allow_long_fields()
        self._path, self._plan = path, plan
        self._found: tuple[str, str] | None = None
        self._base: sqlite3.Connection | None = None
        header = next(self._lines(), [])
        self._places = [header.index(known_column(name, header, path.name)) for name in (plan.key, plan.value)]

    def facts(self) -> TableFacts:
        rows = next(int(row[0]) for row in self._rows("SELECT count(*) FROM copied", []))
        return TableFacts(rows, *self._kinds(), indexed=True, blocks=rows + 1, numbered=True, unique=True)

    def close(self) -> None:
        if self._base is not None:
            self._base.close()

    def _kinds(self) -> tuple[str, str]:
        if self._found is None:
            whole = [True, True]
            for texts in self._texts():
                whole = [each and _whole(text) for each, text in zip(whole, texts, strict=True)]
            self._found = kinds_of(*whole)
        return self._found

    def _copy(self) -> sqlite3.Connection:
        if self._base is None:
            key, value = (_TYPES[kind] for kind in self._kinds())
            self._base = sqlite3.connect("", isolation_level=None)
            self._base.create_function("levada_hash", 1, hash_of, deterministic=True)
            for each in (*_QUICK, f"CREATE TABLE copied (k {key}, v {value})", "BEGIN"):
                self._base.execute(each)
            self._base.executemany("INSERT INTO copied VALUES (?, ?)", self._texts())
            self._base.execute("COMMIT")
            self._base.execute("CREATE INDEX by_key ON copied (k, v)")
        return self._base

    def _table(self) -> str:
        return "copied"

    def _quoted(self, name: str) -> str:
        return "k" if name == self._plan.key else "v"

    def _key(self) -> str:
        return "k"

    def _hashed(self) -> str:
        return "levada_hash(k)"

    def _rows(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        try:
            yield from self._copy().execute(statement, values)
        except sqlite3.Error as error:
            raise StoreFull(
                f"{self._path} cannot be copied to be read: {error}. Name a folder with room in SQLITE_TMPDIR"
            ) from error

    def _texts(self) -> Iterator[tuple[str | None, str | None]]:
        lines = self._lines()
        next(lines, None)
        key, value = self._places
        for line in lines:
            if line:  # fields that a short line lacks are NULL, and counted as such
                line += [""] * (1 + max(key, value) - len(line))
                yield line[key] or None, line[value] or None

    def _lines(self) -> Iterator[list[str]]:
        try:
            with self._path.open(encoding="utf-8-sig", newline="") as file:
                yield from csv.reader(file, strict=True)  # an unclosed quote would swallow the rest
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise LevadaError(f"{self._path} cannot be read as CSV: {error}") from error


def _whole(text: str | None) -> bool:
    """The integer, if it is written as Python would write it: a leading zero makes it text."""
    if text is None:
        return True
    try:
        return str(int(text)) == text and -(1 << 63) <= int(text) < 1 << 63
    except ValueError:
        return False
