"""How is a sample of documents read from a file: JSON lines, CSV or Parquet?

Read as far as it can be: half lines and lines that hold no document are counted. Of more documents than are asked
for an even draw is kept, in their order. MongoDB's extended JSON (`$oid`, `$date`, `$numberLong`) is read as the
values that it stands for.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec

from levada.adapters.csv_fields import allow_long_fields
from levada.errors import LevadaError, MissingExtra, UsageError

__all__ = ["SampleReading", "drawn", "read_sample"]

_LONGEST_LINE = 16 << 20
_MOST_LEVELS = 50
_PARQUET = (".parquet", ".pq")

Drawn = TypeVar("Drawn")


@dataclass(slots=True)
class SampleReading:
    """What was met: `rows`, of which `damaged` held no document; `names` of their fields."""

    rows: int = 0
    damaged: int = 0
    names: dict[str, None] = field(default_factory=dict)


def drawn(items: Iterable[Drawn], most: int) -> list[Drawn]:
    """All of them, or an even draw of so many, in their order (Vitter's reservoir)."""
    chance = Random(0)  # noqa: S311  the same draw every time
    iterator = iter(items)
    kept = list(enumerate(islice(iterator, most)))
    for number, item in enumerate(iterator, most):
        place = chance.randrange(number + 1)
        if place < most:
            kept[place] = (number, item)
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])]


def read_sample(path: Path, reading: SampleReading) -> Iterator[dict[str, Any]]:
    """The documents of a file, by the end of its name."""
    if not path.is_file():
        raise LevadaError(f"there is no sample of documents {path}")
    suffix = path.suffix.lower()
    read = _rows_of_parquet if suffix in _PARQUET else _rows_of_csv if suffix == ".csv" else _rows_of_lines
    for row in _readable(path, read):
        reading.rows += 1
        if isinstance(row, dict):
            yield row
        else:
            reading.damaged += 1


def _readable(path: Path, read: Callable[[Path], Iterator[Any]]) -> Iterator[Any]:
    try:
        yield from read(path)
    except OSError as error:
        raise LevadaError(f"cannot read {path}: {error.strerror or error}") from None


def _rows_of_lines(path: Path) -> Iterator[Any]:
    with path.open("rb") as lines:
        while line := lines.readline(_LONGEST_LINE):
            if line.strip():
                yield _document(line)


def _document(line: bytes) -> Any:
    try:
        return plain(msgspec.json.decode(line))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def plain(value: Any, level: int = 0) -> Any:
    """Extended JSON as the values that it stands for."""
    if isinstance(value, dict):
        if len(value) == 1 and (name := next(iter(value)))[:1] == "$":
            return _extended(name, value[name])
        if level < _MOST_LEVELS:
            return {name: plain(each, level + 1) for name, each in value.items()}
    return value


def _extended(name: str, value: Any) -> Any:
    try:
        if name in ("$numberLong", "$numberInt"):
            return int(value)
        if name == "$numberDouble":
            return float(value)
    except (TypeError, ValueError):
        return value
    if name == "$date" and isinstance(value, dict):
        return _moment(value.get("$numberLong"))
    return value


def _moment(milliseconds: Any) -> Any:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return milliseconds


def _rows_of_csv(path: Path) -> Iterator[Any]:
    allow_long_fields()
    with path.open(encoding="utf-8", errors="replace", newline="") as text:
        try:
            for row in csv.DictReader(text):
                whole = None not in row and None not in row.values()  # a half line has fewer or more cells
                yield {name: _cell(cell) for name, cell in row.items() if cell != ""} if whole else None
        except csv.Error as error:
            raise UsageError(f"{path} is no CSV: {error}") from None


def _cell(text: str) -> Any:
    """A number where writing it again gives the same text; `007` is a text."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if str(value) == text and math.isfinite(value):
            return value
    return text


def _rows_of_parquet(path: Path) -> Iterator[Any]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    try:
        with parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=4096):
                yield from batch.to_pylist()
    except (ArrowException, ValueError) as error:
        raise UsageError(f"{path} is no Parquet file: {str(error)[:100]}") from None
