"""Queries in PostgreSQL's csvlog and jsonlog, and in pg_stat_statements.

The logs hold statements with `log_statement` or `log_min_duration_statement`; of the steps of a prepared statement
only its execution counts. Times whose zone is an abbreviation are taken for UTC: within one log they are in order.
Source: PostgreSQL's manual, error reporting and logging.

The statistics hold no values: a statement counts once for all values, with its number of calls (`times`). The
columns of the tables are read as well, so that a column without a table name finds its table.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

import msgspec

from levada.capture.json_documents import JsonReading, json_documents, whole_lines
from levada.capture.postgresql.scope import Columns, Known, number_or_text
from levada.capture.postgresql.statements import StatementReading
from levada.core.errors import LevadaError, MissingExtra, Refused, UsageError
from levada.sharding.queries import QueryEntry
from levada.store.postgresql.connection import address_parts

_FEWEST_COLUMNS, _MOST_COLUMNS = 22, 40  # each version adds a few
_MESSAGE = re.compile(
    r"(?:duration: (?P<millis>\d{1,12}(?:\.\d+)?) ms  )?(?:statement|execute (?!fetch from )[^:]*): (?P<sql>.*)",
    re.DOTALL,
)  # "execute fetch from" is the next batch of an answer
_PARAMETERS = re.compile(r"\$(\d{1,5}) = (?:NULL|'((?:[^']|'')*)')", re.DOTALL)


class PostgresLogReading(StatementReading):
    """Counts of what was read."""

    lines: JsonReading = msgspec.field(default_factory=JsonReading)
    entries: int = 0


class _Entry(NamedTuple):
    severity: str
    message: str
    detail: str
    time: str


def queries_in_postgres_log(file: BinaryIO, reading: PostgresLogReading) -> Iterator[QueryEntry]:
    """The queries of a file that can be read from its beginning again."""
    for entry in _entries(file, reading):
        reading.entries += 1
        message = _MESSAGE.match(entry.message) if entry.severity == "LOG" else None
        if message is None:
            continue
        seconds = float(message["millis"]) / 1000 if message["millis"] else None
        for query in reading.queries_of(message["sql"], _parameters(entry.detail)):
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
        except csv.Error:  # a half line, or a field beyond the limit: the next line may be complete
            reading.damaged += 1
            continue
        reading.lines += 1
        if not _FEWEST_COLUMNS <= len(row) <= _MOST_COLUMNS:
            reading.damaged += 1
            continue
        yield _Entry(row[11], row[13], row[14], row[0])


def _parameters(detail: str) -> dict[int, Known]:
    """Values of `parameters: $1 = '42', $2 = NULL`. Every value is quoted there, so numbers are recognised by
    form."""
    if not detail.lower().startswith("parameters: "):
        return {}
    return {
        int(found[1]): Known(None if found[2] is None else number_or_text(found[2].replace("''", "'")))
        for found in _PARAMETERS.finditer(detail)
    }


def _moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(" ".join(text.split(" ")[:2])).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


_STATEMENTS = """
SELECT query, sum(calls)::bigint, sum({time}), sum(rows)::bigint FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP BY query
"""
_COLUMNS = """
SELECT table_schema || '.' || table_name, array_agg(column_name::text) FROM information_schema.columns
WHERE table_schema NOT IN ('pg_catalog', 'information_schema') GROUP BY 1
"""
_CONNECT_SECONDS = 10
_HOW = "add pg_stat_statements to shared_preload_libraries, restart, and CREATE EXTENSION pg_stat_statements"


def queries_in_statistics(dsn: str, reading: StatementReading) -> Iterator[QueryEntry]:
    """The statements of a server's pg_stat_statements."""
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("psycopg", "postgresql") from None
    address_parts(dsn)
    try:
        with psycopg.connect(dsn, connect_timeout=_CONNECT_SECONDS, autocommit=True) as server:
            columns: Columns = {name: frozenset(listed) for name, listed in server.execute(_COLUMNS)}
            time = "total_exec_time" if server.info.server_version >= 130_000 else "total_time"
            rows = server.execute(_STATEMENTS.format(time=time)).fetchall()
    except psycopg.errors.UndefinedTable:
        raise Refused(f"this PostgreSQL has no statement statistics: {_HOW}") from None
    except psycopg.errors.ObjectNotInPrerequisiteState:
        raise Refused(f"pg_stat_statements is not loaded: {_HOW}") from None
    except psycopg.Error as error:
        lines = str(error).strip().splitlines() or [repr(error)]
        raise LevadaError(f"this PostgreSQL cannot be queried: {lines[0]}") from None
    for sql, calls, millis, count in rows:
        seconds = float(millis) / 1000 / calls if calls else None
        for query in reading.queries_of(str(sql), columns=columns):
            inserted = query.inserted or (round(int(count) / calls) if query.op == "insert" and calls else 0)
            yield msgspec.structs.replace(
                query, source="postgres", times=int(calls), seconds=seconds, inserted=inserted
            )
