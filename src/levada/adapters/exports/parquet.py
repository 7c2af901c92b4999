"""A Parquet file, in row groups that fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from levada.adapters.exports.rows import Row, row_of
from levada.adapters.exports.whole_file import Output
from levada.errors import MissingExtra
from levada.records import Document

__all__ = ["write_parquet"]

ROWS_PER_GROUP = 5_000
CHARACTERS_PER_GROUP = 8 << 20


def write_parquet(documents: Iterable[Document], out: Output) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    schema = _schema(pyarrow)
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for rows in _groups(documents):
            writer.write_table(pyarrow.Table.from_pylist([msgspec.structs.asdict(row) for row in rows], schema))


def _schema(pyarrow: Any) -> Any:
    text, time = pyarrow.string(), pyarrow.timestamp("ms", tz="UTC")
    special = {
        "fetched_at": time,
        "checked_at": time,
        "changed_at": time,
        "version": pyarrow.int32(),
        "words": pyarrow.int32(),
        "status": pyarrow.int16(),
        "searchable": pyarrow.bool_(),
    }
    names = [field.name for field in msgspec.structs.fields(Row)]
    return pyarrow.schema([pyarrow.field(name, special.get(name, text), nullable=False) for name in names])


def _groups(documents: Iterable[Document]) -> Iterator[list[Row]]:
    rows: list[Row] = []
    characters = 0
    for document in documents:
        row = row_of(document)
        rows.append(row)
        characters += len(row.text) + len(row.title) + len(row.url)
        if len(rows) >= ROWS_PER_GROUP or characters >= CHARACTERS_PER_GROUP:
            yield rows
            rows, characters = [], 0
    if rows:
        yield rows
