"""JSON documents in a file, whatever separates them.

They come one per line, as in logs and exports, as an array, or as documents over several lines. Anything else is
counted: a half line, a banner, an older format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeAlias

import msgspec

LONGEST_LINE = 32 << 20
Hook: TypeAlias = Callable[[dict[str, Any]], Any]
_BEGIN = re.compile(r"[^\[\], \t\r\n]")
_LONGEST_FIRST = 200
_LARGEST_WHOLE = 256 << 20  # of a file that is not one document per line


class JsonReading(msgspec.Struct):
    """Counts of what was read."""

    lines: int = 0
    damaged: int = 0  # lines that are no JSON document, or documents that are cut short


def whole_lines(file: BinaryIO, reading: JsonReading) -> Iterator[bytes]:
    """Lines without their ends. A line that is too long is skipped and counted."""
    while line := file.readline(LONGEST_LINE):
        whole = line.endswith(b"\n") or len(line) < LONGEST_LINE
        if whole:
            yield line.rstrip(b"\r\n")
            continue
        reading.damaged += 1
        while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass


def json_documents(file: BinaryIO, reading: JsonReading, hook: Hook | None = None) -> Iterator[dict[str, Any]]:
    """Every object. The file must be readable from its beginning again. `hook` receives every object, inner ones
    first, and returns the value it represents, or raises `ValueError`."""
    first = next((line for line in whole_lines(file, JsonReading()) if line.strip(b"[, \t")), b"")
    file.seek(0)
    # a longer first line is one that is cut in the middle, not the beginning of a document over several lines
    if first.lstrip()[:1] in (b"[", b"{") and _document(first, None) is None and len(first) <= _LONGEST_FIRST:
        yield from _over_lines(file, reading, hook)
        return
    for line in whole_lines(file, reading):
        if not line.strip(b"[], \t"):
            continue
        reading.lines += 1
        document = _document(line, hook)
        if document is None:
            reading.damaged += 1
        else:
            yield document


def _document(line: bytes, hook: Hook | None) -> dict[str, Any] | None:
    text = line.strip().lstrip(b"[, ").rstrip(b", ")
    for candidate in (text, text.removesuffix(b"]")):
        try:
            document = json.loads(candidate, object_hook=hook)
        except (ValueError, RecursionError):
            continue
        return document if isinstance(document, dict) else None
    return None


def _over_lines(file: BinaryIO, reading: JsonReading, hook: Hook | None) -> Iterator[dict[str, Any]]:
    text = file.read(_LARGEST_WHOLE).decode("utf-8", "replace")
    decoder, at = json.JSONDecoder(object_hook=hook), 0
    while (begin := _BEGIN.search(text, at)) is not None:
        reading.lines += 1
        try:
            document, at = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            reading.damaged += 1
            return
        if isinstance(document, dict):
            yield document
        else:
            reading.damaged += 1
    if file.read(1):
        reading.damaged += 1
