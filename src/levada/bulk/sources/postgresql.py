"""Tables of PostgreSQL, read by many instances from one snapshot.

The last ANALYZE left the most common keys with their shares, and bounds that divide the other keys into equal
numbers. For integers that is as good as a sample, and costs nothing. Where it is outdated, tasks that turn out too
big are split while the load runs.

All instances read one exported snapshot, in read-only transactions that last as long as the load. Each exports the
snapshot that it sees again, so the load outlives the instance that began it: as long as one instance lives, others
can join. When all are gone the snapshot is gone too, and the load begins again under a new generation.

Integers come by COPY BINARY, a task's columns as strings of bytes: the server sends one row per task instead of one
message per row, which saves us ten times the CPU and costs it no more. Anything else comes by a server-side cursor
that is planned to be read to its end (`cursor_tuple_fraction = 1`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.errors import InsufficientPrivilege, OperationalError
from psycopg.pq import TransactionStatus

from levada.bulk.protocols import Away, RowBatch
from levada.bulk.sources.rows import collected
from levada.bulk.splitting import (
    BlockRange,
    Cut,
    HashShare,
    Key,
    KeyRange,
    Modulus,
    NullKeys,
    Span,
    TableFacts,
    thinned,
)
from levada.bulk.tasks import LoadPlan
from levada.core.errors import LevadaError, Refused, UsageError
from levada.core.suggestions import near_names
from levada.store.postgresql.connection import address_parts

INTEGERS = {"int2", "int4", "int8"}
_TEXTS = {"text", "varchar"}
_VALUES = _TEXTS | {"float4", "float8", "bool", "bytea"}  # read as Python objects; the rest as text
_COLUMNS = """
SELECT a.attname, t.typname, a.attnotnull, coalesce(c.collisdeterministic, true), a.attnum,
       has_column_privilege(a.attrelid, a.attnum, 'SELECT'), a.atttypmod
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
"""
_RELATION = """
SELECT c.oid, c.relkind::text,
       CASE WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid) / current_setting('block_size')::int END
FROM pg_class c WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_INDEXED = """
SELECT coalesce(bool_or(i.indkey[0] = %(column)s AND m.amname = 'btree'), false),
       coalesce(bool_or(i.indisunique AND i.indnkeyatts = 1 AND i.indkey[0] = %(column)s), false)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
WHERE i.indrelid = %(table)s AND i.indisvalid AND i.indpred IS NULL
"""
_NAMES = """
SELECT n.nspname, c.relname, pg_table_is_visible(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
_TYPMOD = 4  # minus this, a numeric's typmod has its digits in the upper 16 bits and its decimals in the lower
_SURE_DIGITS = 18  # every integer of this many digits fits into 64 bits; not every one of 19 does


class TableColumn(NamedTuple):
    name: str
    type: str
    nullable: bool
    orderly: bool
    number: int
    narrow: bool  # a numeric without decimals that always fits into 64 bits

    @property
    def whole(self) -> bool:
        return self.type in INTEGERS or (self.type == "numeric" and self.narrow)

    @property
    def as_key(self) -> sql.Composable:
        """The expression to read: integers as they are, anything else as the text that map lookups use."""
        return self._read_as(_TEXTS)

    @property
    def as_value(self) -> sql.Composable:
        """The expression to read: integers and types that Python knows as they are, anything else as text."""
        return self._read_as(_VALUES)

    def _read_as(self, known: set[str]) -> sql.Composable:
        name = sql.Identifier(self.name)
        if self.type == "numeric" and self.whole:
            return sql.SQL("{}::int8").format(name)
        return name if self.type in INTEGERS | known else sql.SQL("{}::text").format(name)


class Relation(NamedTuple):
    name: sql.Composable
    oid: int
    kind: str  # r table, p partitioned, m materialised, v view, f foreign
    blocks: int
    key: TableColumn
    value: TableColumn
    watermark: TableColumn | None
    indexed: bool
    unique: bool

    @property
    def sampled(self) -> bool:
        return self.kind in "rm" or self.kind == "p"


def relation_of(line: psycopg.Connection[Any], plan: LoadPlan) -> Relation:
    name, oid, kind, blocks = _found(line, plan.table)
    columns = _columns(line, oid)
    key, value = _column(plan, plan.key, columns), _column(plan, plan.value, columns)
    watermark = _column(plan, plan.watermark, columns) if plan.watermark is not None else None
    indexed, unique = _row(line.execute(_INDEXED, {"table": oid, "column": key.number}))
    return Relation(name, oid, kind, blocks, key, value, watermark, indexed, unique)


def _found(line: psycopg.Connection[Any], table: str) -> tuple[sql.Composable, int, str, int]:
    for name in (sql.Identifier(table), sql.Identifier(*table.split("."))):
        found = line.execute(_RELATION, (name.as_string(line),)).fetchone()
        if found is not None:
            return name, int(found[0]), str(found[1]), int(found[2] or 0)
    known = [str(row[1]) if row[2] else f"{row[0]}.{row[1]}" for row in line.execute(_NAMES)]
    raise UsageError(f"there is no table or view {table!r}: {near_names(table, known)}")


def _columns(line: psycopg.Connection[Any], oid: int) -> dict[str, tuple[TableColumn, bool]]:
    found = {}
    for name, type_name, required, orderly, number, allowed, typmod in line.execute(_COLUMNS, (oid,)):
        column = TableColumn(name, type_name, not required, orderly, number, _narrow(typmod))
        found[name] = (column, allowed)
    return found


def _narrow(typmod: int) -> bool:
    digits, decimals = divmod(typmod - _TYPMOD, 1 << 16)
    return decimals == 0 and 0 < digits <= _SURE_DIGITS


def _column(plan: LoadPlan, name: str, columns: dict[str, tuple[TableColumn, bool]]) -> TableColumn:
    if name not in columns:
        raise UsageError(f"{plan.table} has no column {name!r}: {near_names(name, columns)}")
    column, allowed = columns[name]
    if not allowed:
        raise Refused(f"column {name} of {plan.table} may not be read: ask for GRANT SELECT on it")
    return column


def _row(done: psycopg.Cursor[Any]) -> tuple[bool, bool]:
    row = done.fetchone()
    return (bool(row[0]), bool(row[1])) if row is not None else (False, False)


def condition(
    span: Span, table: Relation, plan: LoadPlan, since: str | None, *, values: bool = False
) -> sql.Composable:
    """The condition after WHERE; with `values`, it also excludes NULL values."""
    key, value = sql.Identifier(table.key.name), sql.Identifier(table.value.name)
    parts = [_of_span(span, key, table)]
    if values:
        parts.append(sql.SQL("{} IS NOT NULL").format(value))
    if since is not None and table.watermark is not None:
        newer = sql.SQL("{} >= {}").format(sql.Identifier(table.watermark.name), since)
        if plan.collect:  # a key with one new row is collected again, from all its rows
            newer = sql.SQL("{} IN (SELECT {} FROM {} WHERE {})").format(key, key, table.name, newer)
        parts.append(newer)
    return sql.SQL(" AND ").join(parts)


def _of_span(span: Span, key: sql.Composable, table: Relation) -> sql.Composable:
    if isinstance(span, NullKeys):
        return sql.SQL("{} IS NULL").format(key)
    parts: list[sql.Composable] = [sql.SQL("{} IS NOT NULL").format(key)] if table.key.nullable else []
    if isinstance(span, KeyRange):
        parts += [_beyond(key, span.low, ">", ">=")] if span.low is not None else []
        parts += [_beyond(key, span.high, "<=", "<")] if span.high is not None else []
    elif isinstance(span, BlockRange):
        parts += [sql.SQL("ctid >= {}::tid").format(f"({span.first},0)")]
        parts += [sql.SQL("ctid < {}::tid").format(f"({span.end},0)")] if span.end is not None else []
    elif isinstance(span, Modulus | HashShare):
        number = key if isinstance(span, Modulus) else sql.SQL("hashtextextended({}::text, 0)").format(key)
        statement = sql.SQL("mod(mod({}, {}) + {}, {}) = {}")
        parts.append(statement.format(number, span.divisor, span.divisor, span.divisor, span.remainder))
    else:
        raise LevadaError("a table of PostgreSQL has no row numbers")
    return sql.SQL(" AND ").join(parts) if parts else sql.SQL("true")


def _beyond(key: sql.Composable, cut: Cut, after: str, before: str) -> sql.Composable:
    return sql.SQL("{} {} {}").format(key, sql.SQL(after if cut.after else before), cut.key)


_FEW = 50  # bounds: fewer say too little
_ASKED = """
SELECT s.histogram_bounds::text::int8[], s.most_common_vals::text::int8[], s.most_common_freqs, s.null_frac
FROM pg_stats s JOIN pg_class c ON c.relname = s.tablename
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = s.schemaname
WHERE c.oid = %s AND s.attname = %s AND NOT s.inherited
"""


def keys_by_statistics(line: psycopg.Connection[Any], oid: int, column: str, size: int) -> list[int]:
    """About `size` integer keys, in order, distributed like those of the table; none if too little is known."""
    row = line.execute(_ASKED, (oid, column)).fetchone()
    if row is None or row[0] is None or len(row[0]) < _FEW:
        return []
    bounds, common, shares, nulls = row[0], row[1] or [], row[2] or [], row[3]
    return spread(bounds, dict(zip(common, shares, strict=True)), 1.0 - nulls, size)


def spread(bounds: list[int], common: dict[int, float], whole: float, size: int) -> list[int]:
    """Keys as often as their share of `whole` says; between two bounds, evenly."""
    often = [key for key, share in common.items() for _ in range(round(size * share / whole))]
    steps = max(1, (size - len(often)) // (len(bounds) - 1))
    between = [low + (high - low) * step // steps for low, high in pairwise(bounds) for step in range(steps)]
    return sorted([*often, *between, bounds[-1]])


_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FETCH = 5_000
_SAMPLE_BLOCKS = 1_000  # enough for tasks of similar size even where rows lie in the order of their keys


class PostgresqlSource:
    """A table of PostgreSQL."""

    def __init__(self, url: str, plan: LoadPlan) -> None:
        address_parts(url)
        self._plan = plan
        self._since: str | None = None
        with _translated(plan):
            self._line = psycopg.connect(
                url, autocommit=True, application_name="levada load", connect_timeout=10, prepare_threshold=None
            )
            self._line.execute("SET cursor_tuple_fraction = 1")
            self._line.execute("SET max_parallel_workers_per_gather = 0")  # there are many instances already
            # the snapshot lasts as long as this connection
            self._line.execute("SET idle_in_transaction_session_timeout = 0")
        try:
            with _translated(plan):
                self._relation = relation_of(self._line, plan)
        except LevadaError:
            self._line.close()
            raise

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        self._since = since
        with _translated(self._plan):
            if not offers:
                self._begin()
                return self._exported()
            for offer in offers:
                self._begin()
                try:
                    self._line.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(offer))
                except (OperationalError, psycopg.InterfaceError):
                    raise
                except psycopg.Error:
                    continue
                return self._exported()
        return None

    def facts(self) -> TableFacts:
        with _translated(self._plan):
            table = self._relation
            key, value = table.key, table.value
            return TableFacts(
                self._estimate(sql.SQL("true")),
                key_kind="int" if key.whole else "text",
                value_kind="int" if value.whole else "any",
                indexed=table.indexed,
                ordered=key.orderly,
                blocks=table.blocks if table.kind in "rm" else None,
                unique=True,
                key_nullable=key.nullable,
                newest=self._newest(table),
            )

    def sample(self, span: Span, size: int) -> list[Key]:
        with _translated(self._plan):
            table = self._relation
            from_all = span == KeyRange() and table.sampled and self._since is None
            if from_all and table.key.type in INTEGERS:
                known = keys_by_statistics(self._line, table.oid, table.key.name, size)
                if known:
                    return list(known)
            where = condition(span, table, self._plan, self._since)
            rows = self._estimate(where)
            share, found = min(1.0, size / max(rows, 1)), list[Key]()
            while not found:
                found = self._drawn(table, where, share, size, from_all)
                if share >= 1.0:
                    break
                share = min(1.0, share * 100)
            return found

    def duplicate(self) -> Key | None:
        with _translated(self._plan):
            table = self._relation
            if table.unique:
                return None
            statement = sql.SQL("SELECT {} FROM {} WHERE {} GROUP BY {} HAVING count(*) > 1 LIMIT 1").format(
                table.key.as_key,
                table.name,
                condition(KeyRange(), table, self._plan, self._since, values=True),
                sql.Identifier(table.key.name),
            )
            row = self._line.execute(statement).fetchone()
            return None if row is None else row[0]

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        with _translated(self._plan):
            table = self._relation
            where = condition(span, table, self._plan, self._since)
            if isinstance(span, NullKeys):
                return self._count(sql.SQL("SELECT count(*) FROM {} WHERE {}").format(table.name, where))
            if table.key.whole and table.value.whole and find_spec("numpy"):
                return self._read_integers(table, span, where, limit)
            return self._read_any(table, where, limit)

    def close(self) -> None:
        self._line.close()

    def _begin(self) -> None:
        if self._line.info.transaction_status is not TransactionStatus.IDLE:
            self._line.execute("ROLLBACK")
        self._line.execute(_BEGIN)

    def _exported(self) -> str:
        row = self._line.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        return str(row[0])

    def _estimate(self, where: sql.Composable) -> int:
        table = self._relation
        statement = sql.SQL("EXPLAIN (FORMAT JSON) SELECT 1 FROM {} WHERE {}").format(table.name, where)
        row = self._line.execute(statement).fetchone()
        assert row is not None
        return int(row[0][0]["Plan"]["Plan Rows"])

    def _newest(self, table: Relation) -> str | None:
        if table.watermark is None:
            return None
        column = sql.Identifier(table.watermark.name)
        row = self._line.execute(sql.SQL("SELECT max({})::text FROM {}").format(column, table.name)).fetchone()
        newest = row[0] if row is not None else None
        return newest if newest is not None else self._since

    def _drawn(self, table: Relation, where: sql.Composable, share: float, size: int, from_all: bool) -> list[Key]:
        """A share of the keys, in order; of a large table from some of its blocks only. The share comes from an
        estimate, which can be anything for a view, so keys are thinned as they arrive."""
        blocks = 1.0
        if from_all and table.blocks > 2 * _SAMPLE_BLOCKS:
            blocks = max(share, _SAMPLE_BLOCKS / table.blocks)
        drawn = sql.SQL("TABLESAMPLE SYSTEM ({})").format(100 * blocks) if blocks < 1.0 else sql.SQL("")
        chance = min(1.0, share / blocks)
        column = sql.Identifier(table.key.name)
        statement = sql.SQL("SELECT {} FROM {} {} WHERE {} AND random() < {} ORDER BY {}").format(
            table.key.as_key, table.name, drawn, where, chance if chance < 1 else 2, column
        )
        with self._line.cursor(name="levada_sample", withhold=False) as cursor:
            cursor.itersize = _FETCH
            return thinned((row[0] for row in cursor.execute(statement)), size)

    def _count(self, statement: sql.Composed) -> int:
        row = self._line.execute(statement).fetchone()
        return int(row[0]) if row is not None else 0

    def _read_integers(self, table: Relation, span: Span, where: sql.Composable, limit: int | None) -> RowBatch | None:
        from levada.bulk.sources.postgresql_arrays import closeness, read_columns, read_stream

        width = 4 if table.value.type in INTEGERS - {"int8"} else 8
        rows = sql.SQL("SELECT {}::int8 AS k, {}::{} AS v FROM {} WHERE {}").format(
            sql.Identifier(table.key.name),
            sql.Identifier(table.value.name),
            sql.SQL(f"int{width}"),
            table.name,
            where,
        )
        if limit is None:
            return read_stream(self._line, rows)
        nulls = table.value.nullable
        return read_columns(self._line, rows, limit, width=width, base=closeness(span), nulls=nulls)

    def _read_any(self, table: Relation, where: sql.Composable, limit: int | None) -> RowBatch | None:
        statement = sql.SQL("SELECT {}, {} FROM {} WHERE {}").format(
            table.key.as_key, table.value.as_value, table.name, where
        )
        kinds = ("int" if table.key.whole else "text", "int" if table.value.whole else "any")
        with self._line.cursor(name="levada_task", withhold=False) as cursor:
            cursor.itersize = _FETCH
            return collected(cursor.execute(statement), kinds, limit)


@contextmanager
def _translated(plan: LoadPlan) -> Iterator[None]:
    """Translate PostgreSQL's errors into one line."""
    try:
        yield
    except (OperationalError, psycopg.InterfaceError) as error:
        raise Away(f"{plan.source} cannot be reached: {_first(error)}") from error
    except InsufficientPrivilege as error:
        raise Refused(f"{plan.table} may not be read: ask for GRANT SELECT on it ({_first(error)})") from error
    except psycopg.Error as error:
        raise LevadaError(f"{plan.table} in {plan.source} cannot be read: {_first(error)}") from error


def _first(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
