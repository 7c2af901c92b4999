"""The tables of a replay: how do documents get on a server, and off it again?

All is in one schema of its own. A table has an index for each of the sets of fields that are most often named
together, the newest document last in it, so that a page of the newest ones is a short walk along it; one for the
id, and one for the shard key. A directory is a table from id to shard, spread over the servers by its hash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from levada.adapters.replay.questions import stored
from levada.errors import Refused
from levada.sharding.asked import AskedQuery
from levada.sharding.log_statistics import equality_fields
from levada.sharding.values import dig

if TYPE_CHECKING:
    import psycopg

__all__ = ["SCHEMA", "Layout", "drop_all", "drop_tables", "fill_directory", "fill_table", "make_schema", "size_of"]

SCHEMA = "levada_replay"
_MOST_INDEXES = 10
_MOST_INDEXED = 8  # fields of one index
_json = msgspec.json.Encoder(enc_hook=str).encode

Row = tuple[Any, ...]


class Layout(NamedTuple):
    """`columns`: where each field is kept; `indexes`: sets of them that are named together."""

    columns: dict[str, str]
    indexes: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, fields: Sequence[str], queries: Iterable[AskedQuery], id_field: str) -> Layout:
        columns = {field: f"f{number}" for number, field in enumerate(fields)}
        counts = Counter(tuple(sorted(equality_fields(query) & columns.keys())) for query in queries)
        counts = Counter({each: times for each, times in counts.items() if each and id_field not in each})
        together = [tuple(columns[field] for field in each[:_MOST_INDEXED]) for each, _ in counts.most_common()]
        own = [(columns[id_field],)] if id_field in columns else []
        return cls(columns, tuple(dict.fromkeys([*own, *together[:_MOST_INDEXES]])))

    def row(self, number: int, document: dict[str, Any]) -> Row:
        return (number, *(stored(dig(document, field)) for field in self.columns), _json(document))


def make_schema(connection: psycopg.Connection[Any], place: str, *, force: bool) -> None:
    if force:
        drop_all(connection)
    there = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (SCHEMA,)).fetchone()
    if there:
        raise Refused(
            f"{place}: the schema {SCHEMA} is there already, from a replay that runs or was kept: --force drops it"
        )
    connection.execute(f"CREATE SCHEMA {SCHEMA}")


def drop_all(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET client_min_messages = warning")
    connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")


def drop_tables(connection: psycopg.Connection[Any], prefix: str) -> None:
    for (name,) in connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s AND starts_with(tablename, %s)",
        (SCHEMA, f"{prefix}_"),
    ).fetchall():
        connection.execute(f"DROP TABLE {SCHEMA}.{name}")


def fill_table(
    connection: psycopg.Connection[Any], table: str, layout: Layout, rows: Iterable[Row], key: Sequence[str]
) -> None:
    """`key`: the fields of the shard key."""
    columns = ", ".join(f"{column} bytea NOT NULL" for column in layout.columns.values())
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(f"CREATE TABLE {table} (number bigint PRIMARY KEY, {columns}, document bytea NOT NULL)")
    _copy(connection, table, ["int8", *["bytea"] * len(layout.columns), "bytea"], rows)
    own = tuple(layout.columns[field] for field in key if field in layout.columns)[:_MOST_INDEXED]
    for names in dict.fromkeys([*layout.indexes, own]):
        if names:
            connection.execute(f"CREATE INDEX ON {table} ({', '.join(names)}, number)")
    connection.execute(f"VACUUM (ANALYZE) {table}")


def fill_directory(connection: psycopg.Connection[Any], table: str, rows: Iterable[Row]) -> None:
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(f"CREATE TABLE {table} (id bytea PRIMARY KEY, shard integer NOT NULL)")
    _copy(connection, table, ["bytea", "int4"], rows)
    connection.execute(f"VACUUM (ANALYZE) {table}")


def size_of(connection: psycopg.Connection[Any]) -> int:
    """Bytes of all tables and indexes of the replay."""
    row = connection.execute(
        """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'""",
        (SCHEMA,),
    ).fetchone()
    return int(row[0]) if row else 0


def _copy(connection: psycopg.Connection[Any], table: str, types: list[str], rows: Iterable[Row]) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy,
    ):
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
