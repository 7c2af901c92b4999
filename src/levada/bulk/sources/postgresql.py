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

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import psycopg
from psycopg.errors import InsufficientPrivilege, OperationalError
from psycopg.pq import TransactionStatus

from levada.bulk.protocols import Away, RowBatch
from levada.bulk.sources.rows import SqlSource, Where, kinds_of, marked
from levada.bulk.splitting import Key, KeyRange, NullKeys, Span, TableFacts, thinned
from levada.bulk.tasks import LoadPlan
from levada.core.errors import LevadaError, Refused
from levada.store.postgresql.connection import address_parts

INTEGERS = {"int2", "int4", "int8"}
_TEXTS = {"text", "varchar"}
_VALUES = _TEXTS | {"float4", "float8", "bool", "bytea"}  # read as Python objects; the rest as text
_COLUMNS = """
SELECT a.attname, t.typname, NOT a.attnotnull, coalesce(c.collisdeterministic, true), a.attnum,
       has_column_privilege(a.attrelid, a.attnum, 'SELECT'), a.atttypmod
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = ? AND a.attnum > 0 AND NOT a.attisdropped
"""
_RELATION = """
SELECT c.oid, c.relkind::text,
       CASE WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid) / current_setting('block_size')::int ELSE 0 END
FROM pg_class c WHERE c.oid = to_regclass(?) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_INDEXED = """
SELECT coalesce(bool_or(i.indkey[0] = ? AND m.amname = 'btree'), false),
       coalesce(bool_or(i.indisunique AND i.indnkeyatts = 1 AND i.indkey[0] = ?), false)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
WHERE i.indrelid = ? AND i.indisvalid AND i.indpred IS NULL
"""
_NAMES = """
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN c.relname::text ELSE n.nspname || '.' || c.relname END
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
    allowed: bool
    typmod: int

    @property
    def whole(self) -> bool:
        """Whether it is an integer, or a numeric without decimals that always fits into 64 bits."""
        digits, decimals = divmod(self.typmod - _TYPMOD, 1 << 16)
        return self.type in INTEGERS or (self.type == "numeric" and decimals == 0 and 0 < digits <= _SURE_DIGITS)


_FEW = 50  # bounds: fewer say too little
_ASKED = """
SELECT s.histogram_bounds::text::int8[], s.most_common_vals::text::int8[], s.most_common_freqs, s.null_frac
FROM pg_stats s JOIN pg_class c ON c.relname = s.tablename
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = s.schemaname
WHERE c.oid = ? AND s.attname = ? AND NOT s.inherited
"""


def spread(bounds: list[int], common: dict[int, float], whole: float, size: int) -> list[int]:
    """Keys as often as their share of `whole` says; between two bounds, evenly."""
    often = [key for key, share in common.items() for _ in range(round(size * share / whole))]
    steps = max(1, (size - len(often)) // (len(bounds) - 1))
    between = [low + (high - low) * step // steps for low, high in pairwise(bounds) for step in range(steps)]
    return sorted([*often, *between, bounds[-1]])


_FETCH = 5_000
_SAMPLE_BLOCKS = 1_000  # enough for tasks of similar size even where rows lie in the order of their keys


class PostgresqlSource(SqlSource):
    """A table of PostgreSQL."""

    _as_text = "::text"

    def __init__(self, url: str, plan: LoadPlan) -> None:
        address_parts(url)
        self._plan = plan
        with _translated(plan):
            self._line = psycopg.connect(
                url, autocommit=True, application_name="levada load", connect_timeout=10, prepare_threshold=None
            )
            self._line.execute("SET cursor_tuple_fraction = 1")
            self._line.execute("SET max_parallel_workers_per_gather = 0")  # there are many instances already
            # the snapshot lasts as long as this connection
            self._line.execute("SET idle_in_transaction_session_timeout = 0")
        self._find_table([[plan.table], plan.table.split(".")], _NAMES)
        self._key_column: TableColumn = self._types[plan.key]
        self._value_column: TableColumn = self._types[plan.value]

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        self._since = since
        with _translated(self._plan):
            for offer in offers or [""]:
                if self._line.info.transaction_status is not TransactionStatus.IDLE:
                    self._line.execute("ROLLBACK")
                self._line.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                try:
                    if offer:
                        self._line.execute(self._bound("SET TRANSACTION SNAPSHOT ?", [offer]))
                except (OperationalError, psycopg.InterfaceError):
                    raise
                except psycopg.Error:
                    continue
                return str(next(self._rows("SELECT pg_export_snapshot()", []))[0])
        return None

    def facts(self) -> TableFacts:
        indexed, _ = self._index()
        return TableFacts(
            self._estimate("true", []),
            *self._kinds(),
            indexed=indexed,
            ordered=self._key_column.orderly,
            blocks=self._blocks if self._kind in "rm" else None,
            unique=True,
            key_nullable=self._nullable(),
            newest=self._newest(),
        )

    def sample(self, span: Span, size: int) -> list[Key]:
        from_all = span == KeyRange() and self._kind in "rmp" and self._since is None
        if from_all and self._key_column.type in INTEGERS and (known := self._by_statistics(size)):
            return known
        where, values = self._where(span)
        share, found = min(1.0, size / max(self._estimate(where, values), 1)), list[Key]()
        while not found:
            found = self._drawn(where, values, share, size, from_all)
            if share >= 1.0:
                break
            share = min(1.0, share * 100)
        return found

    def duplicate(self) -> Key | None:
        _, unique = self._index()
        return None if unique else super().duplicate()

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        whole = self._key_column.whole and self._value_column.whole
        if isinstance(span, NullKeys) or not whole or not find_spec("numpy"):
            return super().read(span, limit)
        from levada.bulk.sources.postgresql_arrays import closeness, read_columns, read_stream

        where, values = self._where(span)
        width = 4 if self._value_column.type in INTEGERS - {"int8"} else 8
        columns = f"{self._key()}::int8 AS k, {self._quoted(self._plan.value)}::int{width} AS v"
        with _translated(self._plan):
            rows = self._bound(f"SELECT {columns} FROM {self._table()} WHERE {where}", values)  # noqa: S608
            if limit is None:
                return read_stream(self._line, rows)
            nulls = self._value_column.nullable
            return read_columns(self._line, rows, limit, width=width, base=closeness(span), nulls=nulls)

    def close(self) -> None:
        self._line.close()

    def _columns(self, named: Sequence[str]) -> dict[str, TableColumn]:
        found = next(self._rows(_RELATION, [".".join(map(self._quoted, named))]), None)
        if found is None:
            return {}
        self._oid, self._kind, self._blocks = found  # r table, p partitioned, m materialised, v view, f foreign
        return {row[0]: TableColumn(*row) for row in self._rows(_COLUMNS, [self._oid])}

    def _check_column(self, name: str, columns: Mapping[str, TableColumn]) -> None:
        super()._check_column(name, columns)
        if not columns[name].allowed:
            raise Refused(f"column {name} of {self._plan.table} may not be read: ask for GRANT SELECT on it")

    def _index(self) -> tuple[bool, bool]:
        """Whether a range of keys is found by an index, and whether one makes the key unique."""
        number = self._key_column.number
        indexed, unique = next(self._rows(_INDEXED, [number, number, self._oid]))
        return indexed, unique

    def _estimate(self, where: str, values: Sequence[Any]) -> int:
        statement = f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {self._table()} WHERE {where}"  # noqa: S608
        return int(next(self._rows(statement, values))[0][0]["Plan"]["Plan Rows"])

    def _by_statistics(self, size: int) -> list[Key]:
        """About `size` integer keys, in order, distributed like those of the table; none if too little is known."""
        row = next(self._rows(_ASKED, [self._oid, self._plan.key]), None)
        if row is None or row[0] is None or len(row[0]) < _FEW:
            return []
        bounds, common, shares, nulls = row[0], row[1] or [], row[2] or [], row[3]
        return list(spread(bounds, dict(zip(common, shares, strict=True)), 1.0 - nulls, size))

    def _drawn(self, where: str, values: list[Any], share: float, size: int, from_all: bool) -> list[Key]:
        """A share of the keys, in order; of a large table from some of its blocks only. The share comes from an
        estimate, which can be anything for a view, so keys are thinned as they arrive."""
        blocks = 1.0
        if from_all and self._blocks > 2 * _SAMPLE_BLOCKS:
            blocks = max(share, _SAMPLE_BLOCKS / self._blocks)
        drawn = f" TABLESAMPLE SYSTEM ({100 * blocks!r})" if blocks < 1.0 else ""
        chance = share / blocks if share < blocks else 2
        statement = (
            f"SELECT {self._read_key()} FROM {self._table()}{drawn}"  # noqa: S608
            f" WHERE {where} AND random() < ? ORDER BY {self._key()}"
        )
        return thinned((row[0] for row in self._streamed(statement, [*values, chance])), size)

    def _where(self, span: Span) -> Where:
        where, values = super()._where(span)
        return self._newer(where, values) if isinstance(span, NullKeys) else (where, values)

    def _nullable(self) -> bool:
        return self._key_column.nullable

    def _place(self, number: int) -> tuple[str, Any]:
        return "ctid", f"({number},0)"

    def _key(self) -> str:
        return self._quoted(self._plan.key)

    def _read_key(self) -> str:
        """Integers as they are, anything else as the text that map lookups use."""
        return self._read_as(self._key_column, _TEXTS)

    def _read_value(self) -> str:
        """Integers and types that Python knows as they are, anything else as text."""
        return self._read_as(self._value_column, _VALUES)

    def _read_as(self, column: TableColumn, known: set[str]) -> str:
        name = self._quoted(column.name)
        if column.type == "numeric" and column.whole:
            return f"{name}::int8"
        return name if column.type in INTEGERS | known else f"{name}::text"

    def _hashed(self) -> str:
        return f"hashtextextended({self._key()}::text, 0)"

    def _kinds(self) -> tuple[str, str]:
        return kinds_of(self._key_column.whole, self._value_column.whole)

    def _rows(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        with _translated(self._plan):
            yield from self._line.execute(self._bound(statement, values))

    def _streamed(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        with _translated(self._plan), self._line.cursor(name="levada_task", withhold=False) as cursor:
            cursor.itersize = _FETCH
            yield from cursor.execute(self._bound(statement, values))

    def _bound(self, statement: str, values: Sequence[Any]) -> str:
        """The statement with its values in place: COPY takes none beside it."""
        return psycopg.ClientCursor(self._line).mogrify(marked(statement), values)


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
