"""What is written in a file of change histories?

Form: `#` lines are comments; then per document, tab-separated: name, first seen, deleted (or empty), change times
joined by commas; times in minutes from any zero; gzip or plain. What cannot be understood is an error that names
the line; what can be set right is set right, and said.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from levada.errors import NotFound, UsageError

__all__ = ["BadHistory", "Document", "History", "read_history"]

_MOST_BYTES = 1 << 30  # unpacked
_MOST_MINUTES = 1e9  # nineteen centuries either way of the zero
_GZIP = b"\x1f\x8b"


class BadHistory(UsageError):
    """A line that cannot be understood; says which."""


class Document(NamedTuple):
    name: str
    first: float  # minutes
    deleted: float | None
    changes: tuple[float, ...]  # strictly rising, after `first`, not after `deleted`


@dataclass(frozen=True, slots=True)
class History:
    documents: tuple[Document, ...]
    repairs: tuple[str, ...]


class _Repairs:
    """What was set right: how often, and where first."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, int]] = {}

    def note(self, what: str, line: int) -> None:
        times, first = self._found.get(what, (0, line))
        self._found[what] = (times + 1, first)

    def told(self) -> tuple[str, ...]:
        return tuple(
            f"{what} (line {first})" if times == 1 else f"{what} ({times} documents, the first in line {first})"
            for what, (times, first) in self._found.items()
        )


def read_history(path: Path) -> History:
    repairs = _Repairs()
    documents: dict[str, Document] = {}
    for number, line in _lines(path):
        document = _document(line, f"{path.name}, line {number}", number, repairs)
        if document is None:
            continue
        if document.name in documents:
            repairs.note("a document was named again: its histories were joined", number)
            document = _joined(documents[document.name], document)
        documents[document.name] = document
    if not documents:
        raise BadHistory(
            f"{path.name} holds no document: each is a line of name, first seen, deleted, change times"
        )
    return History(tuple(documents.values()), repairs.told())


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = _unpacked(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except UnicodeDecodeError as error:
        raise BadHistory(f"{path.name} is not text in UTF-8, from byte {error.start} on") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadHistory(f"{path.name} is a damaged gzip file: {error}") from None
    except OSError as error:
        raise BadHistory(f"{path} cannot be read: {error.strerror or error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.rstrip("\r")


def _unpacked(path: Path) -> bytes:
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        with gzip.GzipFile(fileobj=raw) if packed else raw as file:
            data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise BadHistory(f"{path.name} unpacks to more than {_MOST_BYTES:,} bytes")
    return data


def _document(line: str, where: str, number: int, repairs: _Repairs) -> Document | None:
    fields = line.split("\t")
    if not 2 <= len(fields) <= 4 or not fields[0].strip():
        raise BadHistory(
            f"{where}: expected name, first seen, deleted and change times between tabs, not {len(fields)} fields"
        )
    name, first_text, deleted_text, times_text = (*fields, "", "")[:4]
    first = _minutes(first_text, "first seen", where)
    deleted = _minutes(deleted_text, "deleted", where) if deleted_text.strip() else None
    if deleted is not None and deleted <= first:
        repairs.note("a document was deleted before it was first seen: left out", number)
        return None
    parts = times_text.split(",") if times_text.strip() else []
    if any(not part.strip() for part in parts):
        repairs.note("a change time was left empty: passed over", number)
    given = [_minutes(part, "change time", where) for part in parts if part.strip()]
    return Document(name, first, deleted, _set_right(given, first, deleted, number, repairs))


def _minutes(text: str, what: str, where: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        raise BadHistory(f"{where}: {what} is no number: {text.strip()[:40]!r}") from None
    if not math.isfinite(minutes) or abs(minutes) > _MOST_MINUTES:
        raise BadHistory(f"{where}: {what} must be between -1e9 and 1e9 minutes, not {text.strip()[:40]}")
    return minutes


def _set_right(
    given: list[float], first: float, deleted: float | None, line: int, repairs: _Repairs
) -> tuple[float, ...]:
    times = sorted(given)
    if times != given:
        repairs.note("change times were out of order: sorted", line)
    if len(set(times)) < len(times):
        repairs.note("a change time was given twice: counted once", line)
    if times and times[0] < first:
        repairs.note("a change came before the document was first seen: dropped", line)
    if deleted is not None and times and times[-1] > deleted:
        repairs.note("a change came after the document was deleted: dropped", line)
    last = math.inf if deleted is None else deleted
    # A change at the very moment of the first sight is what was seen.
    return tuple(sorted({at for at in times if first < at <= last}))


def _joined(one: Document, other: Document) -> Document:
    first = min(one.first, other.first)
    ends = (one.deleted, other.deleted)
    deleted = None if None in ends else max(end for end in ends if end is not None)
    return Document(one.name, first, deleted, tuple(sorted({*one.changes, *other.changes})))
