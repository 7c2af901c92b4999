"""Which queries are in PostgreSQL's log, written as csvlog or jsonlog?

Source: PostgreSQL's manual, error reporting and logging. Statements are there with `log_statement` or
`log_min_duration_statement`; of the steps of a prepared statement only its execution counts. Times whose zone is an
abbreviation are taken for UTC: within one log they are in order.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

import msgspec

from levada.adapters.json_documents import JsonReading, json_documents, whole_lines
from levada.adapters.postgres_queries.statements import NotSql, asked_of_sql
from levada.adapters.postgres_queries.values import Known, number_or_text
from levada.errors import UsageError
from levada.sharding.asked import AskedQuery

__all__ = ["PostgresLogReading", "asked_in_postgres_log"]

_FEWEST_COLUMNS, _MOST_COLUMNS = 22, 40  # each version appends a few
_MESSAGE = re.compile(
    r"(?:duration: (?P<millis>\d{1,12}(?:\.\d+)?) ms  )?(?:statement|execute (?!fetch from )[^:]*): (?P<sql>.*)",
    re.DOTALL,
)  # "execute fetch from" is the next batch of an answer
_PARAMETERS = re.compile(r"\$(\d{1,5}) = (?:NULL|'((?:[^']|'')*)')", re.DOTALL)


class PostgresLogReading(msgspec.Struct):
    lines: JsonReading
    entries: int = 0
    statements: int = 0
    queries: int = 0
    silent: int = 0  # statements that ask nothing of a table of somebody's own
    unparsed: int = 0  # statements that are no SQL that PostgreSQL's grammar knows


class _Entry(NamedTuple):
    severity: str
    message: str
    detail: str
    time: str


def asked_in_postgres_log(file: BinaryIO, reading: PostgresLogReading) -> Iterator[AskedQuery]:
    """The queries of a file that can be read from its beginning again."""
    for entry in _entries(file, reading):
        reading.entries += 1
        said = _MESSAGE.match(entry.message) if entry.severity == "LOG" else None
        if said is None:
            continue
        reading.statements += 1
        seconds = float(said["millis"]) / 1000 if said["millis"] else None
        yield from _asked(said["sql"], entry, seconds, reading)


def _asked(sql: str, entry: _Entry, seconds: float | None, reading: PostgresLogReading) -> Iterator[AskedQuery]:
    try:
        found = asked_of_sql(sql, _parameters(entry.detail))
    except NotSql:
        reading.unparsed += 1
        return
    reading.silent += not found
    for query in found:
        reading.queries += 1
        yield msgspec.structs.replace(query, at=_moment(entry.time), source="postgres-log", seconds=seconds)


def _entries(file: BinaryIO, reading: PostgresLogReading) -> Iterator[_Entry]:
    first = file.read(1)
    file.seek(0)
    if first == b"{":
        for document in json_documents(file, reading.lines):
            texts = [document.get(name) for name in ("error_severity", "message", "detail", "timestamp")]
            yield _Entry(*(text if isinstance(text, str) else "" for text in texts))
    elif first[:1].isdigit() or not first:
        yield from _csv_entries(file, reading.lines)
    else:
        raise UsageError("this is neither a csvlog nor a jsonlog: set log_destination = 'csvlog' (or 'jsonlog')")


def _csv_entries(file: BinaryIO, reading: JsonReading) -> Iterator[_Entry]:
    texts = (line.decode("utf-8", "replace").replace("\0", "") + "\n" for line in whole_lines(file, reading))
    rows = csv.reader(texts, strict=True)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:  # a half line, or a field beyond the limit: the next line may be whole
            reading.damaged += 1
            continue
        reading.lines += 1
        if not _FEWEST_COLUMNS <= len(row) <= _MOST_COLUMNS:
            reading.damaged += 1
            continue
        yield _Entry(row[11], row[13], row[14], row[0])


def _parameters(detail: str) -> dict[int, Known]:
    """From `parameters: $1 = '42', $2 = NULL`; every value is quoted there, so numbers are told by their looks."""
    if not detail.lower().startswith("parameters: "):
        return {}
    return {
        int(found[1]): Known(None if found[2] is None else number_or_text(found[2].replace("''", "'")))
        for found in _PARAMETERS.finditer(detail)
    }


def _moment(text: str) -> float | None:
    for layout in ("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S"):
        try:
            return datetime.strptime(" ".join(text.split(" ")[:2]), layout).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None
