"""How is a CSV file read? Whole, once for each task; its first line names the columns.

Everything in it is text; a column whose every value is an integer of 64 bits is taken as one. An empty field is
NULL. The rows of a key may stand anywhere: each task reads the whole file and takes its keys.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from levada.adapters.bulk.plain_source import gathered, known_column
from levada.bulk.generations import LoadPlan
from levada.bulk.ports import RowBatch
from levada.bulk.spans import Key, NullKeys, Span, holds
from levada.bulk.splitting import TableFacts
from levada.errors import LevadaError, NotFound, UsageError

__all__ = ["CsvSource"]


class CsvSource:
    def __init__(self, path: Path, plan: LoadPlan) -> None:
        if not path.exists():
            raise NotFound(f"there is no file {path}")
        if plan.watermark is not None:
            raise UsageError("a CSV file is always loaded whole: leave --watermark away")
        self._path, self._plan = path, plan
        self._kinds: tuple[str, str] | None = None
        self._count = 0
        header = next(self._lines(), [])
        self._places = [header.index(known_column(name, header, path.name)) for name in (plan.key, plan.value)]

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        return ""

    def facts(self) -> TableFacts:
        kinds = self._known()
        return TableFacts(self._count, *kinds, blocks=self._count, numbered=True)

    def sample(self, span: Span, size: int) -> list[Key]:
        keys = sorted(key for _, key, _ in self._rows(span) if key is not None)
        return keys[:: max(1, len(keys) // size)]

    def duplicate(self) -> Key | None:
        return None  # found while loading: a task holds all rows of its keys

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        if isinstance(span, NullKeys):
            return sum(1 for _ in self._rows(span))
        return gathered(((key, value) for _, key, value in self._rows(span)), self._known(), limit)

    def close(self) -> None:
        pass

    def _known(self) -> tuple[str, str]:
        if self._kinds is None:
            whole = [True, True]
            for texts in self._texts():
                self._count += 1
                whole = [each and _whole(text) for each, text in zip(whole, texts, strict=True)]
            self._kinds = ("int" if whole[0] else "text", "int" if whole[1] else "any")
        return self._kinds

    def _rows(self, span: Span) -> Iterator[tuple[int, Any, Any]]:
        key_kind, value_kind = self._known()
        for place, (key, value) in enumerate(self._texts()):
            named: Key | None = None if key is None else int(key) if key_kind == "int" else key
            if holds(span, named, place, _hash):
                yield place, named, None if value is None else int(value) if value_kind == "int" else value

    def _texts(self) -> Iterator[tuple[str | None, str | None]]:
        lines = self._lines()
        next(lines, None)
        key, value = self._places
        for line in lines:
            if len(line) <= max(key, value):
                continue  # a short line has neither
            yield line[key] or None, line[value] or None

    def _lines(self) -> Iterator[list[str]]:
        try:
            with self._path.open(encoding="utf-8-sig", newline="") as file:
                yield from csv.reader(file)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise LevadaError(f"{self._path} cannot be read as CSV: {error}") from error


def _whole(text: str | None) -> bool:
    """Written just as Python would write it: a leading zero is part of a text."""
    if text is None:
        return True
    try:
        return str(int(text)) == text and -(1 << 63) <= int(text) < 1 << 63
    except ValueError:
        return False


def _hash(key: Key) -> int:
    return crc32(str(key).encode("utf-8", "surrogatepass"))
