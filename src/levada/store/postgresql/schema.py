"""Creating, recognising and checking the tables of a PostgreSQL store, which are in `schema.sql`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from levada.core.errors import StoreDamaged, StoreError
from levada.store.rows import Row
from levada.store.rules import first_site, first_token
from levada.store.sql.base import check_format

if TYPE_CHECKING:
    import psycopg

_APPLICATION = "levada"
SCHEMA_VERSION = 4
OLDEST_VERSION = 3  # that can be upgraded
URL_INDEXED = 400

_OLDEST = 120_000
_ENCODING = "SELECT current_setting('server_encoding')"
_THERE = """SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s"""
_MAY_USE = "SELECT has_schema_privilege(%s, 'USAGE')"
_OURS = _THERE + " AND c.relname = 'levada_store'"
# Two processes may open a missing store at the same time: one creates it, the other waits for it.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('levada store ' || %s, 0))"


# Reading all contents is the point: a server with checksums then says which page of its disk is broken.
_CONTENTS = "SELECT count(sha256(content_zstd)) FROM versions"
_LAWS = {
    "a page is neither visited nor waiting, or both": """SELECT p.url FROM pages p WHERE 1 !=
        (SELECT count(*) FROM visited v WHERE v.page_id = p.id AND v.site_id = p.site_id)
        + (SELECT count(*) FROM unvisited u WHERE u.site_id = p.site_id AND u.priority = p.priority
           AND u.page_id = p.id) LIMIT 1""",
    "a page's site is not there": """SELECT p.url FROM pages p
        WHERE NOT EXISTS (SELECT 1 FROM sites s WHERE s.id = p.site_id) LIMIT 1""",
    "a document has no content": """SELECT d.page_id::text FROM documents d WHERE d.version > 0
        AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.page_id = d.page_id AND v.version = d.version) LIMIT 1""",
    "a stored document has no place in the order of changes": """SELECT d.page_id::text FROM documents d
        WHERE (d.version > 0) != (d.seq IS NOT NULL) LIMIT 1""",
    "a step was not counted": """SELECT d.seq::text FROM documents d WHERE d.seq >
        coalesce((SELECT n FROM counters WHERE name = 'seq'), 0) LIMIT 1""",
    "a lease has no page": """SELECT l.page_id::text FROM leases l
        WHERE NOT EXISTS (SELECT 1 FROM pages p WHERE p.id = l.page_id AND p.site_id = l.site_id) LIMIT 1""",
}


def prepare(
    connection: psycopg.Connection[Any],
    place: str,
    schema: str,
    *,
    shard: int = 0,
    make: bool = False,
    older: bool = False,
) -> None:
    """Check that the schema holds a store of our format; create it if there is nothing and `make` is set. With
    `older`, a store that can be upgraded is accepted too."""
    if connection.info.server_version < _OLDEST:
        version = connection.info.parameter_status("server_version")
        raise StoreError(f"{place} is version {version}: Levada needs PostgreSQL {_OLDEST // 10_000} or newer")
    (encoding,) = connection.execute(_ENCODING).fetchone() or ("",)
    if encoding != "UTF8":
        raise StoreError(f"{place} keeps text as {encoding}: name a database with the encoding UTF8")
    if _is_empty(connection, schema):
        if not make:
            raise StoreError(f"there is nothing in {place} yet: crawl something first")
        make_tables(connection, schema, shard)
    elif not (connection.execute(_MAY_USE, (schema,)).fetchone() or (True,))[0]:
        (user,) = connection.execute("SELECT current_user::text").fetchone() or ("",)
        raise StoreError(
            f"{place} does not let the user {user} in: let its owner run 'GRANT USAGE ON SCHEMA' and the others of "
            "docs/postgresql.md"
        )
    there = _stored_format(connection, place, schema)
    check_format(place, there, SCHEMA_VERSION, OLDEST_VERSION, "schema", older=older)


def check(ask: Callable[[str], list[Row]], place: str) -> None:
    """Read everything; raise a `StoreDamaged` that says what is wrong."""
    ask(_CONTENTS)
    for trouble, question in _LAWS.items():
        if rows := ask(question):
            where = rows[0][0]
            raise StoreDamaged(f"{place} is damaged ({trouble}: {where}): restore a copy, or crawl again")


def _stored_format(connection: psycopg.Connection[Any], place: str, schema: str) -> int:
    (ours,) = connection.execute(_OURS, (schema,)).fetchone() or (0,)
    row = connection.execute("SELECT application, format FROM levada_store").fetchone() if ours else None
    if row is None or row[0] != _APPLICATION:
        raise StoreDamaged(f"{place} holds tables, but not of Levada: name another schema")
    return int(row[1])


def _is_empty(connection: psycopg.Connection[Any], schema: str) -> bool:
    row = connection.execute(_THERE, (schema,)).fetchone()
    return row is None or row[0] == 0


def make_tables(connection: psycopg.Connection[Any], schema: str, shard: int) -> None:
    """Create the tables in a schema, unless another process was first."""
    from importlib.resources import files  # imported here: a store is created once

    from psycopg import sql

    with connection.transaction():
        connection.execute(_ONE_AT_A_TIME, (schema,))
        if not _is_empty(connection, schema):  # another process was first while we waited
            return
        known = connection.execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)).fetchone()
        if not known:  # a user who may not create schemas can still use an existing one
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        tables = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
        filled = tables.format(
            application=_APPLICATION,
            format=SCHEMA_VERSION,
            url_indexed=URL_INDEXED,
            first_site=first_site(shard) + 1,
            first_token=first_token(shard) + 1,
        )
        connection.execute(filled.encode())
