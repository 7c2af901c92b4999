"""Is this schema a store that we can use?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from levada.adapters.postgresql.schema import APPLICATION, SCHEMA_VERSION, tables
from levada.errors import StoreDamaged, StoreError, StoreTooNew

if TYPE_CHECKING:
    import psycopg

__all__ = ["OLDEST", "prepare"]

OLDEST = 120_000
_ENCODING = "SELECT current_setting('server_encoding')"
_THERE = """SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s"""
_OURS = _THERE + " AND c.relname = 'levada_store'"
# Two processes may open a store that is not there yet at the same time: one makes it, the other waits for it.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('levada store ' || %s, 0))"


def prepare(
    connection: psycopg.Connection[Any], place: str, schema: str, *, shard: int = 0, make: bool = False
) -> None:
    """See that the schema holds a store of our format; `make` it if there is nothing."""
    if connection.info.server_version < OLDEST:
        version = connection.info.parameter_status("server_version")
        raise StoreError(f"{place} is version {version}: Levada needs PostgreSQL {OLDEST // 10_000} or newer")
    (encoding,) = connection.execute(_ENCODING).fetchone() or ("",)
    if encoding != "UTF8":
        raise StoreError(f"{place} keeps text as {encoding}: name a database with the encoding UTF8")
    if _is_empty(connection, schema):
        if not make:
            raise StoreError(f"there is nothing in {place} yet: crawl something first")
        _make(connection, schema, shard)
    _check_format(place, _stored_format(connection, place, schema))


def _stored_format(connection: psycopg.Connection[Any], place: str, schema: str) -> int:
    (ours,) = connection.execute(_OURS, (schema,)).fetchone() or (0,)
    row = connection.execute("SELECT application, format FROM levada_store").fetchone() if ours else None
    if row is None or row[0] != APPLICATION:
        raise StoreDamaged(f"{place} holds tables, but not of Levada: name another schema")
    return int(row[1])


def _check_format(place: str, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"{place} was written by a newer Levada (format {version}, ours is {SCHEMA_VERSION}): update Levada"
        )
    if version < SCHEMA_VERSION:
        raise StoreError(
            f"{place} was written by an older Levada (format {version}, ours is {SCHEMA_VERSION}): "
            "crawl into another schema, or use that Levada"
        )


def _is_empty(connection: psycopg.Connection[Any], schema: str) -> bool:
    row = connection.execute(_THERE, (schema,)).fetchone()
    return row is None or row[0] == 0


def _make(connection: psycopg.Connection[Any], schema: str, shard: int) -> None:
    from psycopg import sql

    with connection.transaction():
        connection.execute(_ONE_AT_A_TIME, (schema,))
        if not _is_empty(connection, schema):  # another process was first while we waited
            return
        known = connection.execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)).fetchone()
        if not known:  # where it is there already, one who may not make schemas can still fill it
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(tables(shard).encode())
