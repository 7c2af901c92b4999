"""The servers of a replay, and the tables on them.

Everything is in one schema of its own. A table has an index for each of the sets of fields that are most often
named together, with the newest document last, so that a page of the newest ones is a short index scan; one for the
id, and one for the shard key. A directory is a table from id to shard, spread over the servers by a hash of the id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from levada.core.errors import LevadaError, Refused, StoreError, UsageError
from levada.replay.questions import stored
from levada.sharding.queries import QueryEntry
from levada.sharding.values import dig
from levada.sharding.workload import equality_fields
from levada.store.postgresql.connection import Address, translated

if TYPE_CHECKING:
    import psycopg


SCHEMA = "levada_replay"
_MOST_INDEXES = 10
_MOST_INDEXED = 8  # fields of one index
_json = msgspec.json.Encoder(enc_hook=str).encode
Row = tuple[Any, ...]


class TableLayout(NamedTuple):
    """`columns`: where each field is kept; `indexes`: sets of them that are named together."""

    columns: dict[str, str]
    indexes: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, fields: Sequence[str], queries: Iterable[QueryEntry], id_field: str) -> TableLayout:
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
    connection: psycopg.Connection[Any], table: str, layout: TableLayout, rows: Iterable[Row], key: Sequence[str]
) -> None:
    """Create and fill a table; `key` are the fields of the shard key."""
    columns = {"number": "int8 PRIMARY KEY", **dict.fromkeys([*layout.columns.values(), "document"], "bytea NOT NULL")}
    own = tuple(layout.columns[field] for field in key if field in layout.columns)[:_MOST_INDEXED]
    _fill(connection, table, columns, rows, [names for names in dict.fromkeys([*layout.indexes, own]) if names])


def fill_directory(connection: psycopg.Connection[Any], table: str, rows: Iterable[Row]) -> None:
    _fill(connection, table, {"id": "bytea PRIMARY KEY", "shard": "int4 NOT NULL"}, rows)


def _fill(
    connection: psycopg.Connection[Any],
    table: str,
    columns: dict[str, str],
    rows: Iterable[Row],
    indexes: Sequence[tuple[str, ...]] = (),
) -> None:
    """Create a table of these columns with their types, fill it, and index it."""
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
        copy.set_types([kind.split()[0] for kind in columns.values()])
        for row in rows:
            copy.write_row(row)
    for names in indexes:
        connection.execute(f"CREATE INDEX ON {table} ({', '.join(names)}, number)")
    connection.execute(f"VACUUM (ANALYZE) {table}")


def size_of(connection: psycopg.Connection[Any]) -> int:
    """Bytes of all tables and indexes of the replay."""
    row = connection.execute(
        """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'""",
        (SCHEMA,),
    ).fetchone()
    return int(row[0]) if row else 0


Made = TypeVar("Made")


def check_targets(dsns: Sequence[str]) -> None:
    """Refuse two names of one database: they would drop each other's tables."""
    places: set[str] = set()
    for place in (Address(dsn, SCHEMA).place for dsn in dsns):
        if place in places:
            raise UsageError(f"--target names {place} twice: give it once, and --shards K for several shards on it")
        places.add(place)


class Servers:
    """The servers of a replay. `away` says why a server does not answer; the replay goes on without it."""

    def __init__(self, dsns: Sequence[str]) -> None:
        self.addresses = [Address(dsn, SCHEMA) for dsn in dsns]
        self.away: dict[int, str] = {}
        self._made: list[int] = []

    def __len__(self) -> int:
        return len(self.addresses)

    def prepare(self, *, force: bool) -> None:
        """Create the schema on each. It fails only if no server answers, or one already has the schema."""
        try:
            for number, address in enumerate(self.addresses):
                self.use(number, partial(make_schema, place=address.place, force=force))
                if number not in self.away:
                    self._made.append(number)
        except LevadaError:
            self.drop()
            raise
        if not self._made:
            raise StoreError(f"no server can be used: {'; '.join(self.away.values())}")

    def use(self, server: int, work: Callable[[psycopg.Connection[Any]], Made]) -> Made | None:
        """The result of `work`; None if the server is away, and from then on it is left out."""
        import psycopg

        if server in self.away:
            return None
        address = self.addresses[server]
        try:
            with address.connect() as connection:
                return work(connection)
        except StoreError as error:
            self.away[server] = str(error)
        except psycopg.Error as error:
            self.away[server] = str(translated(error, address.place))
        return None

    def each(self, work: Callable[[int, psycopg.Connection[Any]], Made]) -> list[Made | None]:
        """Run `work` on all of them at once."""
        with ThreadPoolExecutor(len(self.addresses)) as pool:
            calls = [pool.submit(self.use, number, partial(work, number)) for number in range(len(self.addresses))]
            return [call.result() for call in calls]

    def forget(self, prefix: str) -> None:
        """Drop the tables of one scheme, so that the next one has room."""
        self.each(lambda number, connection: drop_tables(connection, prefix))

    def drop(self) -> None:
        """Drop the schemas that were created; a server that went away is tried once more."""
        for number in self._made:
            self.away.pop(number, None)
            self.use(number, drop_all)
