"""Citus: spreads the schemas of a collection over the nodes of a Citus cluster.

A shard of Levada is a schema, and Citus places whole schemas (schema-based sharding). So every table of a shard lies on
one node, transactions within a shard stay local to it, and Levada's key decides what lies together.
`create_distributed_table` cannot be used on these tables: Citus refuses a unique index without the distribution column,
and pages are unique by URL, documents by their step in the change log, sites by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from levada.core.errors import Refused, UsageError
from levada.store.postgresql.connection import Address, translated

_SPREADS = "SELECT to_regprocedure('citus_schema_distribute(regnamespace)') IS NOT NULL"
_AVAILABLE = "SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'"
_MAKE = "CREATE EXTENSION IF NOT EXISTS citus"
_NODES = "SELECT count(*) FROM pg_dist_node WHERE noderole = 'primary' AND isactive AND shouldhaveshards"
_SPREAD = "SELECT n.nspname FROM pg_dist_schema d JOIN pg_namespace n ON n.oid = d.schemaid"


class CitusShards(msgspec.Struct, frozen=True):
    """What Citus has to do, or has done, on one server."""

    server: str  # without user and password
    nodes: int  # of Citus that take shards
    schemas: tuple[str, ...]  # all that the collection has there
    sql: tuple[str, ...]  # for those that are not spread yet


def spread_schemas(dsn: str, schemas: Sequence[str], *, dry_run: bool) -> CitusShards:
    """Give each schema to a node, unless it is done already; with `dry_run` only say how.

    A schema is copied to its node while nobody writes to it; if that is cut short, it stays where it was.
    """
    import psycopg

    if not schemas:
        raise UsageError("no shard is on a server: move the collection to Citus's coordinator with --server DSN first")
    address = Address(dsn, schemas[0])
    where = address.place.partition(" (schema ")[0]
    try:
        with address.connect() as session:
            made = _is(session, _SPREADS)
            if not made and not _is(session, _AVAILABLE):
                raise Refused(
                    f"{where} has no Citus 12 or newer: install it there, or spread the shards over several servers "
                    "with --server"
                )
            sql = [] if made else [_MAKE]
            if not made and not dry_run:
                session.execute(_MAKE)
                made = True
            nodes = _number(session, _NODES) if made else 0
            if made and not nodes:
                raise Refused(f"Citus at {where} has no node that takes shards: add one with citus_add_node")
            spread = {name for (name,) in session.execute(_SPREAD)} if made else set()
            statements = [_distribute(session, name) for name in schemas if name not in spread]
            for statement in () if dry_run else statements:
                session.execute(statement.encode())
            return CitusShards(where, nodes, tuple(schemas), (*sql, *statements))
    except psycopg.Error as error:
        raise translated(error, where) from error


def _distribute(session: Any, schema: str) -> str:
    from psycopg import sql

    return (
        sql.SQL("SELECT citus_schema_distribute({})")
        .format(sql.Literal(sql.Identifier(schema).as_string(session)))
        .as_string(session)
    )


def _is(session: Any, query: str) -> bool:
    return bool(_number(session, query))


def _number(session: Any, query: str) -> int:
    return int((session.execute(query).fetchone() or (0,))[0])
