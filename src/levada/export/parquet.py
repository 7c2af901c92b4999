"""Parquet export, in row groups that fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from levada.core.errors import MissingExtra
from levada.core.files import ExportContext
from levada.core.records import Document
from levada.export.rows import ExportRow, row_of

ROWS_PER_GROUP = 5_000
CHARACTERS_PER_GROUP = 8 << 20
_UNPACKED = 4  # times as large as it is packed is structured data


class ParquetExporter:
    """A Parquet table, one row per page."""

    suffix = ".parquet"

    def export(self, documents: Iterable[Document], out: Path, context: ExportContext) -> int:
        with context.open(out) as file:
            try:
                import pyarrow
                from pyarrow import parquet
            except ImportError:
                raise MissingExtra("pyarrow", "parquet") from None
            schema = _schema(pyarrow)
            with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
                for rows in _groups(documents):
                    plain = [_plain(row) for row in rows]
                    writer.write_table(pyarrow.Table.from_pylist(plain, schema))
            return file.written


def _plain(row: ExportRow) -> dict[str, Any]:
    """The columns of a row; the items, which are trees, as JSON."""
    return msgspec.structs.asdict(row) | {"items": msgspec.json.encode(row.items).decode()}


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
    names = [field.name for field in msgspec.structs.fields(ExportRow)]
    return pyarrow.schema([pyarrow.field(name, special.get(name, text), nullable=False) for name in names])


def _groups(documents: Iterable[Document]) -> Iterator[list[ExportRow]]:
    rows: list[ExportRow] = []
    characters = 0
    for document in documents:
        row = row_of(document)
        rows.append(row)
        characters += len(row.text) + len(row.title) + len(row.url) + _UNPACKED * len(document.packed_data)
        if len(rows) >= ROWS_PER_GROUP or characters >= CHARACTERS_PER_GROUP:
            yield rows
            rows, characters = [], 0
    if rows:
        yield rows
