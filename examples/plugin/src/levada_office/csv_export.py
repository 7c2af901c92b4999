"""Stored pages as CSV: address, title, number of words, and when the page was fetched."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from levada.core.files import ExportContext
from levada.core.records import Document

__all__ = ["CsvExporter"]

_COLUMNS = ("url", "title", "words", "fetched_at")


class CsvExporter:
    """`levada export --format csv`; the option `delimiter` is a comma unless `[plugins.csv]` says otherwise."""

    levada_protocol = 1
    suffix = ".csv"

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._delimiter = str((options or {}).get("delimiter", ","))

    def export(self, documents: Iterator[Document], out: Path, context: ExportContext) -> int:
        line = io.StringIO(newline="")
        rows = csv.writer(line, delimiter=self._delimiter)
        with context.open(out) as file:
            rows.writerow(_COLUMNS)
            for document in documents:
                rows.writerow([str(getattr(document, name)).replace("\0", "") for name in _COLUMNS])
                file.write(line.getvalue().encode("utf-8", "replace"))
                line.seek(0)
                line.truncate()
            file.write(line.getvalue().encode())
            return file.written
