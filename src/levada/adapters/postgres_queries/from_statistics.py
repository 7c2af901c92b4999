"""Which queries has a PostgreSQL counted in pg_stat_statements?

Values are not in there: a statement counts once for all values, with how often it was asked (`times`). What columns
tables have is asked as well, so that a column without its table's name finds its table.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from levada.adapters.postgres_queries.scope import Columns
from levada.adapters.postgres_queries.statements import NotSql, asked_of_sql
from levada.adapters.postgresql_address import address_parts
from levada.errors import LevadaError, MissingExtra, Refused
from levada.sharding.asked import AskedQuery

__all__ = ["StatisticsReading", "asked_in_statistics"]

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


class StatisticsReading(msgspec.Struct):
    statements: int = 0
    queries: int = 0
    silent: int = 0
    unparsed: int = 0


def asked_in_statistics(dsn: str, reading: StatisticsReading) -> Iterator[AskedQuery]:
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
        raise Refused(f"this PostgreSQL counts no statements: {_HOW}") from None
    except psycopg.errors.ObjectNotInPrerequisiteState:
        raise Refused(f"pg_stat_statements is not loaded: {_HOW}") from None
    except psycopg.Error as error:
        said = str(error).strip().splitlines() or [repr(error)]
        raise LevadaError(f"this PostgreSQL cannot be asked: {said[0]}") from None
    for sql, calls, millis, count in rows:
        reading.statements += 1
        yield from _asked(str(sql), int(calls), float(millis), int(count), columns, reading)


def _asked(
    sql: str, calls: int, millis: float, rows: int, columns: Columns, reading: StatisticsReading
) -> Iterator[AskedQuery]:
    try:
        found = asked_of_sql(sql, columns=columns)
    except NotSql:
        reading.unparsed += 1
        return
    reading.silent += not found
    for query in found:
        reading.queries += 1
        seconds = millis / 1000 / calls if calls else None
        inserted = query.inserted or (round(rows / calls) if query.op == "insert" and calls else 0)
        yield msgspec.structs.replace(query, source="postgres", times=calls, seconds=seconds, inserted=inserted)
