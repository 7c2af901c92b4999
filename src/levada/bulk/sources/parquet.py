"""Parquet files: two columns, read in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from levada.bulk.protocols import RowBatch
from levada.bulk.sources.rows import collected, kinds_of, known_column
from levada.bulk.splitting import Key, KeyRange, NullKeys, RowRange, Span, TableFacts, drawn, holds
from levada.bulk.tasks import LoadPlan
from levada.core.errors import LevadaError, NotFound, UsageError

_BATCH = 20_000


class ParquetSource:
    """A Parquet file. The rows of a key may stand anywhere, so each task reads the keys of all row groups that can
    hold its rows. Most files are sorted by key, and these are few then."""

    def __init__(self, path: Path, plan: LoadPlan) -> None:
        if not path.exists():
            raise NotFound(f"there is no file {path}")
        if plan.watermark is not None:
            raise UsageError("a Parquet file is always loaded whole: omit --watermark")
        self._plan = plan
        try:
            self._file = pyarrow.parquet.ParquetFile(path, memory_map=True)
        except (OSError, pyarrow.ArrowException) as error:
            raise LevadaError(f"{path} cannot be read as Parquet: {error}") from error
        schema = self._file.schema_arrow
        types = [_type_of(name, schema, path.name) for name in (plan.key, plan.value)]
        self._kinds = kinds_of(*(pyarrow.types.is_integer(each) and each != pyarrow.uint64() for each in types))
        self._is_ordered = pyarrow.types.is_signed_integer(types[0])  # the order of its statistics
        self._key_leaf = self._only_leaf(plan.key)

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        return ""

    def facts(self) -> TableFacts:
        rows = self._file.metadata.num_rows
        return TableFacts(rows, *self._kinds, blocks=rows, numbered=True)

    def sample(self, span: Span, size: int) -> list[Key]:
        keys = (key for key, _ in self._rows(span) if key is not None)
        return sorted(drawn(keys, size, Random(size)))  # noqa: S311 -- no secret

    def duplicate(self) -> Key | None:
        return None  # found while loading: a task holds all rows of its keys

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        if isinstance(span, NullKeys):
            return sum(1 for _ in self._rows(span))
        return collected(self._rows(span), self._kinds, limit)

    def close(self) -> None:
        self._file.close()

    def _rows(self, span: Span) -> Iterator[tuple[Any, Any]]:
        try:
            for first, batch in self._batches(span):
                rows = zip(self._column(batch, 0), self._column(batch, 1), strict=True)
                yield from (row for place, row in enumerate(rows, first) if holds(span, row[0], place))
        except (OSError, pyarrow.ArrowException) as error:
            raise LevadaError(f"{self._plan.source} cannot be read: {error}") from error

    def _batches(self, span: Span) -> Iterator[tuple[int, Any]]:
        """Only the row groups in which the span can have rows, and where each batch begins."""
        place = 0
        for group in range(self._file.num_row_groups):
            if self._may_hold(span, group, place):
                at = place
                for batch in self._file.iter_batches(_BATCH, [group], [self._plan.key, self._plan.value]):
                    yield at, _within(batch, span, self._plan.key)
                    at += batch.num_rows
            place += self._file.metadata.row_group(group).num_rows

    def _only_leaf(self, path: str) -> int | None:
        """Where the file has the statistics of this column; a part of a struct may have the same path."""
        leaves = self._file.metadata.schema
        found = [number for number in range(len(leaves)) if leaves.column(number).path == path]
        return found[0] if len(found) == 1 else None

    def _may_hold(self, span: Span, group: int, first: int) -> bool:
        """Whether the file's statistics allow rows of the span in this row group, which begins with row `first`."""
        facts = self._file.metadata.row_group(group)
        if isinstance(span, RowRange):
            return first + facts.num_rows > span.first and (span.end is None or first < span.end)
        keys = facts.column(self._key_leaf).statistics if self._key_leaf is not None else None
        if keys is not None and isinstance(span, NullKeys):
            return not keys.has_null_count or keys.null_count > 0
        if keys is not None and isinstance(span, KeyRange) and self._is_ordered and keys.has_min_max:
            reaches_in = span.low is None or span.low.is_below(keys.max)
            return reaches_in and (span.high is None or not span.high.is_below(keys.min))
        return True

    def _column(self, batch: Any, which: int) -> list[Any]:
        column = batch.column(self._plan.key if which == 0 else self._plan.value)
        if self._kinds[which] == "text" or (self._kinds[which] == "any" and not _known(column.type)):
            column = pyarrow.compute.cast(column, pyarrow.string())
        return list(column.to_pylist())


def _type_of(name: str, schema: Any, file: str) -> Any:
    """The type of a column that can be loaded."""
    if schema.names.count(known_column(name, schema.names, file)) > 1:
        raise UsageError(f"{file} has several columns {name!r}: give them names of their own")
    kind = schema.field(name).type
    if pyarrow.types.is_nested(kind):
        raise UsageError(f"column {name!r} of {file} is nested: only plain columns can be loaded")
    return kind


def _known(kind: Any) -> bool:
    types = pyarrow.types
    return any(each(kind) for each in (types.is_string, types.is_large_string, types.is_floating, types.is_boolean))


def _within(batch: Any, span: Span, key: str) -> Any:
    """Only the rows inside a range of integer keys: their positions no longer matter."""
    column = batch.column(key)
    if not isinstance(span, KeyRange) or not pyarrow.types.is_integer(column.type) or column.type == pyarrow.uint64():
        return batch
    mask = pyarrow.compute.is_valid(column)
    if span.low is not None:
        beyond = pyarrow.compute.greater if span.low.after else pyarrow.compute.greater_equal
        mask = pyarrow.compute.and_(mask, beyond(column, span.low.key))
    if span.high is not None:
        below = pyarrow.compute.less_equal if span.high.after else pyarrow.compute.less
        mask = pyarrow.compute.and_(mask, below(column, span.high.key))
    return batch.filter(pyarrow.compute.fill_null(mask, False))
