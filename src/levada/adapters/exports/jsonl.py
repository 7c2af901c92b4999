"""One JSON object per line and page."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from levada.adapters.exports.rows import row_of
from levada.adapters.exports.whole_file import Output
from levada.records import Document

__all__ = ["write_jsonl"]


def write_jsonl(documents: Iterable[Document], out: Output) -> None:
    encoder = msgspec.json.Encoder()
    for document in documents:
        out.write(encoder.encode(row_of(document)) + b"\n")
