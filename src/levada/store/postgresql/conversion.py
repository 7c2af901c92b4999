"""Copying a whole store between a PostgreSQL schema and a SQLite file, with every number as it is.

Pages, versions, visits, the change log and its positions, leases and outboxes keep their numbers, so whatever follows
the change log goes on where it was. Both directions read one snapshot and need no program of PostgreSQL. The tables
and columns are those that both databases have, found by their names; what differs is listed here:

- `pages` of SQLite is split into `pages` and `documents`.
- `numbered` of SQLite is a column of `sites`.
- Numbers of sites and leases come from counters of SQLite, and from sequences of PostgreSQL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from levada.core.errors import StoreDamaged, StoreError
from levada.core.protocols import Faults
from levada.store.base import StoreLimits
from levada.store.faults import NoFaults
from levada.store.postgresql.connection import Address, connect, translated
from levada.store.postgresql.dialect import url_rest
from levada.store.postgresql.schema import make_tables, prepare
from levada.store.rules import first_site, first_token
from levada.store.sqlite import SqliteStore
from levada.store.sqlite.connection import check
from levada.store.sqlite.connection import translated as sqlite_translated
from levada.store.sqlite.frontier import FENCED

if TYPE_CHECKING:
    import psycopg

    from levada.store.postgresql.session import Session

UNUSED = "levada: a copy that is not in use yet"
"""The comment on a schema that was filled, until the collection uses it. Only such a schema is replaced."""

RETIRED = "levada: the collection has moved away from here"
_ROWS = 2_000
_COLUMNS = """SELECT table_name, column_name, data_type FROM information_schema.columns
    WHERE table_schema = %s ORDER BY table_name, ordinal_position"""
_OURS_ALONE = {"levada_store", "epochs"}  # the format of the schema, and which servers it was on
_SEQUENCES = {"site_numbers": "last-site", "tokens": "token"}  # and the counters that SQLite has instead
_REMARK = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s"
_TABLES = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s"
_CONVERTED: dict[str, Callable[[Any], Any]] = {"boolean": bool, "double precision": float, "bytea": bytes}
_Columns = dict[str, dict[str, str]]  # of each table, in their order, with their types
_SESSION = {  # here whole tables are read
    "enable_seqscan": "on",
    "enable_sort": "on",
    "enable_hashjoin": "on",
    "enable_mergejoin": "on",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "0",
    "statement_timeout": "0",
}
Progress = Callable[[int, int], None]
"""Told how many rows are copied, and of how many."""


class SchemaSnapshot:
    """A schema as it is at this moment, whatever is written to it from now on."""

    def __init__(self, address: Address) -> None:
        import psycopg

        self.place = address.place
        self._schema = address.schema
        with ExitStack() as opened:
            self._session = opened.enter_context(closing(connect(address, StoreLimits(), read_only=True)))
            try:
                with self._session.settled():
                    prepare(self._session, address.place, address.schema)
                self._session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                _whole_tables(self._session)
                self._session.execute("SELECT format FROM levada_store")  # begins the snapshot
                # Sequences are outside of transactions: at least as far as the snapshot knows.
                self._taken = {name: self._last(name) for name in _SEQUENCES}
            except psycopg.Error as error:
                raise translated(error, address.place) from error
            opened.pop_all()

    @property
    def bytes(self) -> int:
        """About the size of a copy."""
        row = self._session.execute(
            """SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'""",
            (self._schema,),
        ).fetchone()
        return int((row and row[0]) or 0)

    def copy(  # repeated because both kinds of snapshot are called alike
        self,
        target: Path,
        *,
        on_progress: Progress = lambda done, total: None,
        reach: Callable[[str], None] = lambda step: None,
    ) -> None:
        """Copy it to a new SQLite file, which is checked."""
        import psycopg

        try:
            SqliteStore(target).close()
            with closing(sqlite3.connect(target, isolation_level=None)) as writing:
                writing.execute("PRAGMA journal_mode = DELETE")
                writing.execute("PRAGMA synchronous = OFF")
                writing.execute("BEGIN")
                self._fill(writing, on_progress, reach)
                writing.execute("COMMIT")
                writing.execute("PRAGMA synchronous = FULL")
                writing.execute("PRAGMA journal_mode = WAL")
                reach("check")
                check(writing, target)
        except psycopg.Error as error:
            raise translated(error, self.place) from error
        except (sqlite3.Error, OSError) as error:
            raise sqlite_translated(error, target) from error

    def close(self) -> None:
        self._session.close()

    def _fill(self, writing: sqlite3.Connection, on_progress: Progress, reach: Callable[[str], None]) -> None:
        tables = _to_file(_file_columns(writing), _schema_columns(self._session, self._schema))
        total, done = sum(self._count(table.question) for table in tables), 0
        for table in tables:
            marks = ", ".join("?" * len(table.columns))
            insert = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})"
            for rows in self._read(table.question):
                writing.executemany(insert, rows)
                done += len(rows)
                reach("step")
                on_progress(done, total)
        if done != total:
            raise StoreDamaged(f"{self.place} could not be copied: {done} of {total} rows arrived")
        for sequence, counter in _SEQUENCES.items():
            writing.execute("INSERT OR REPLACE INTO counters VALUES (?, ?)", (counter, self._taken[sequence]))

    def _read(self, question: str) -> Iterator[list[tuple[Any, ...]]]:
        with self._session.cursor(name="copied") as cursor:
            cursor.execute(question.encode(), binary=True)
            while rows := cursor.fetchmany(_ROWS):
                yield rows

    def _count(self, question: str) -> int:
        row = self._session.execute(f"SELECT count(*) FROM ({question}) rows".encode()).fetchone()
        return int(row[0]) if row else 0

    def _last(self, sequence: str) -> int:
        row = self._session.execute(f"SELECT last_value - (NOT is_called)::int FROM {sequence}".encode()).fetchone()
        return int(row[0]) if row else 0


def load_schema(
    source: Path,
    address: Address,
    shard: int,
    *,
    on_progress: Progress = lambda done, total: None,
    faults: Faults | None = None,
) -> None:
    """Fill a new schema from a SQLite store of our format, all of it or nothing. It is marked as `UNUSED`; a schema
    that is marked so already is made anew."""
    import psycopg
    from psycopg import sql

    faults = faults or NoFaults()
    name = sql.Identifier(address.schema)
    try:
        with (
            closing(
                sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
            ) as reading,
            closing(connect(address, StoreLimits(), read_only=False)) as session,
            session.transaction(),
        ):
            _whole_tables(session)
            reading.execute("BEGIN")
            if _remark(session, address.schema) == UNUSED:
                session.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(name))
            elif _holds_tables(session, address.schema):
                raise StoreError(f"{address.place} holds something already: name another database, or drop that schema")
            make_tables(session, address.schema, shard)
            session.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(name, sql.Literal(UNUSED)))
            faults.reach("load.tables")
            _load(reading, session, address, shard, on_progress, faults)
            faults.reach("load.before-commit")
        faults.reach("load.after-commit")
    except psycopg.Error as error:
        raise translated(error, address.place) from error
    except (sqlite3.Error, OSError) as error:
        raise sqlite_translated(error, source) from error


def is_free(address: Address) -> bool:
    """Whether a store may be copied into this schema."""
    import psycopg

    try:
        with closing(address.connect()) as session:
            return _remark(session, address.schema) == UNUSED or not _holds_tables(session, address.schema)
    except psycopg.Error as error:
        raise translated(error, address.place) from error


def mark_schema(address: Address, remark: str) -> None:
    """Say on the schema what it is for; "" for one that is in use."""
    import psycopg
    from psycopg import sql

    text = sql.Literal(remark) if remark else sql.SQL("NULL")
    try:
        with closing(address.connect()) as session:
            session.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(address.schema), text))
    except psycopg.Error as error:
        raise translated(error, address.place) from error


def drop_schema(address: Address) -> None:
    """Delete a schema that the collection has left."""
    import psycopg
    from psycopg import sql

    try:
        with closing(address.connect()) as session:
            session.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(address.schema)))
    except psycopg.Error as error:
        raise translated(error, address.place) from error


@dataclass(frozen=True)
class _Table:
    name: str
    columns: tuple[str, ...]
    question: str  # its rows, asked of the other database


def _to_file(file: _Columns, schema: _Columns) -> list[_Table]:
    """Every table of SQLite, asked of PostgreSQL."""
    tables = []
    for name, columns in file.items():
        if name == "pages":
            asked = ", ".join(_of_page(column, schema) for column in columns)
            question = f"SELECT {asked} FROM pages p LEFT JOIN documents d ON d.page_id = p.id ORDER BY p.id"
        elif name == "numbered":
            question = "SELECT id, numbered FROM sites WHERE numbered != pages ORDER BY id"
        elif name == "leases":
            question = f"""SELECT page_id, token, expires_at,
                CASE WHEN fenced THEN {FENCED} ELSE live::int::bigint END FROM leases ORDER BY page_id"""
        else:
            question = f"SELECT {', '.join(columns)} FROM {name} ORDER BY {next(iter(columns))}"
        tables.append(_Table(name, tuple(columns), question))
    return tables


def _of_page(column: str, schema: _Columns) -> str:
    if column in schema["pages"]:
        return f"p.{column}"
    empty = {"version": "0", "gone": "false"}.get(column)
    return f"coalesce(d.{column}, {empty})" if empty else f"d.{column}"


def _to_schema(file: _Columns, schema: _Columns) -> list[_Table]:
    """Every table of PostgreSQL, asked of SQLite."""
    tables = []
    for name, columns in schema.items():
        if name == "pages":
            asked = ", ".join("url" if column == "url_rest" else column for column in columns)
            question = f"SELECT {asked} FROM pages"
        elif name == "documents":
            own = [column for column in columns if column != "page_id"]
            known = " OR ".join(f"{column} IS NOT NULL" for column in own if column not in ("version", "gone"))
            question = f"SELECT id, {', '.join(own)} FROM pages WHERE version > 0 OR gone OR {known}"
        elif name == "sites":
            asked = ", ".join("coalesce(n.n, pages)" if column == "numbered" else column for column in columns)
            question = f"SELECT {asked} FROM sites LEFT JOIN numbered n ON n.site_id = id"
        elif name == "leases":
            question = f"""SELECT l.page_id, p.site_id, l.token, l.expires_at, l.live > 0, l.live = {FENCED}
                FROM leases l JOIN pages p ON p.id = l.page_id"""
        elif name == "counters":
            apart = ", ".join(f"'{counter}'" for counter in _SEQUENCES.values())
            question = f"SELECT name, n FROM counters WHERE name NOT IN ({apart})"
        else:
            question = f"SELECT {', '.join(columns)} FROM {name}"
        ordered = ("page_id", *own) if name == "documents" else tuple(columns)
        tables.append(_Table(name, ordered, question))
    return tables


def _load(
    reading: sqlite3.Connection,
    session: psycopg.Connection[Any],
    address: Address,
    shard: int,
    on_progress: Progress,
    faults: Faults,
) -> None:
    schema = _schema_columns(session, address.schema)
    tables = _to_schema(_file_columns(reading), schema)
    total = sum(reading.execute(f"SELECT count(*) FROM ({table.question})").fetchone()[0] for table in tables)
    done = 0
    for table in tables:
        converted = [
            url_rest if column == "url_rest" else _CONVERTED.get(schema[table.name][column]) for column in table.columns
        ]
        with session.cursor() as cursor:
            copying = f"COPY {table.name} ({', '.join(table.columns)}) FROM STDIN (FORMAT BINARY)"
            with cursor.copy(copying.encode()) as copy:
                for row in reading.execute(table.question):
                    values = [
                        value if value is None or convert is None else convert(value)
                        for value, convert in zip(row, converted, strict=True)
                    ]
                    copy.write_row(values)
                    done += 1
                    if done % _ROWS == 0:
                        on_progress(done, total)
            faults.reach("load.table")
    arrived = sum(_rows(session, table.name) for table in tables)
    if not arrived == done == total:
        raise StoreDamaged(f"{address.place} could not be filled: {arrived} of {total} rows arrived")
    on_progress(total, total)
    _set_sequences(reading, session, shard)


def _set_sequences(reading: sqlite3.Connection, session: psycopg.Connection[Any], shard: int) -> None:
    counters: dict[str, int] = dict(reading.execute("SELECT name, n FROM counters"))
    (site,) = reading.execute("SELECT coalesce(max(id), 0) FROM sites").fetchone()
    (token,) = reading.execute("SELECT coalesce(max(token), 0) FROM leases").fetchone()
    (outbox,) = reading.execute("SELECT coalesce(max(id), 0) FROM outbox").fetchone()
    last = {
        "site_numbers": max(site, counters.get("last-site", 0), first_site(shard)),
        "tokens": max(token, counters.get("token", 0), first_token(shard)),
        "outbox_id_seq": outbox,
    }
    for sequence, number in last.items():
        session.execute("SELECT setval(%s::regclass, %s, false)", (sequence, number + 1))


def _file_columns(connection: sqlite3.Connection) -> _Columns:
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY rowid"
    ).fetchall()
    return {
        name: {column: kind for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({name})")}
        for (name,) in tables
    }


def _schema_columns(session: psycopg.Connection[Any], schema: str) -> _Columns:
    found: _Columns = {}
    for table, column, kind in session.execute(_COLUMNS, (schema,)):
        if table not in _OURS_ALONE:
            found.setdefault(table, {})[column] = kind
    return found


def _remark(session: psycopg.Connection[Any], schema: str) -> str | None:
    row = session.execute(_REMARK, (schema,)).fetchone()
    return row[0] if row else None


def _holds_tables(session: psycopg.Connection[Any], schema: str) -> bool:
    row = session.execute(_TABLES, (schema,)).fetchone()
    return bool(row and row[0])


def _rows(session: psycopg.Connection[Any], table: str) -> int:
    row = session.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    return int(row[0]) if row else 0


def _whole_tables(session: Session) -> None:
    """For the rest of the transaction that has begun."""
    session.patience = None
    if session.own_settings is not None:
        session.make({**session.own_settings, **_SESSION}, local=True)
        return
    for name, value in _SESSION.items():
        session.execute("SELECT set_config(%s, %s, true)", (name, value))
