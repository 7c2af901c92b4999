"""How is a table of a PostgreSQL read by many at once, as one instant saw it?

All instances read one exported snapshot, in transactions that only read and last as long as the load. Each of them
exports the snapshot that it sees again, so that the load outlives whoever began it: as long as one instance lives,
others can join. When all are gone the snapshot is gone too, and the load begins again under a new generation.

Integers come by COPY BINARY, a task's columns as strings of bytes: the server sends one row for each task instead
of one message for each row, which saves us ten times the CPU and costs it no more. Anything else comes by a
server-side cursor that is planned to be read to its end (`cursor_tuple_fraction = 1`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import psycopg
from psycopg import sql
from psycopg.errors import InsufficientPrivilege, OperationalError
from psycopg.pq import TransactionStatus

from levada.adapters.bulk.postgresql_catalog import INTEGERS, Relation, relation_of
from levada.adapters.bulk.postgresql_spans import condition
from levada.adapters.bulk.postgresql_statistics import keys_by_statistics
from levada.adapters.postgresql_address import address_parts
from levada.bulk.collecting import PlainRows
from levada.bulk.generations import LoadPlan
from levada.bulk.ports import RowBatch
from levada.bulk.spans import Key, KeyRange, NullKeys, Span
from levada.bulk.splitting import TableFacts
from levada.bulk.thinning import thinned
from levada.bulk.trouble import Away
from levada.errors import LevadaError, Refused

__all__ = ["PostgresqlSource"]

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FETCH = 5_000
_ROW_BYTES = 256  # what a row of text may take, on average, before its task counts as too big
_SAMPLE_BLOCKS = 1_000  # enough for tasks of like size even where rows lie in the order of their keys


class PostgresqlSource:
    def __init__(self, url: str, plan: LoadPlan) -> None:
        address_parts(url)
        self._plan = plan
        self._since: str | None = None
        with _told(plan):
            self._line = psycopg.connect(
                url, autocommit=True, application_name="levada load", connect_timeout=10, prepare_threshold=None
            )
            self._line.execute("SET cursor_tuple_fraction = 1")
            self._line.execute("SET max_parallel_workers_per_gather = 0")  # we are many already
            self._line.execute("SET idle_in_transaction_session_timeout = 0")  # the snapshot lasts as long as we
        try:
            with _told(plan):
                self._relation = relation_of(self._line, plan)
        except LevadaError:
            self._line.close()
            raise

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        self._since = since
        with _told(self._plan):
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
        with _told(self._plan):
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
        with _told(self._plan):
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
        with _told(self._plan):
            table = self._relation
            if table.unique:
                return None
            asked = sql.SQL("SELECT {} FROM {} WHERE {} GROUP BY {} HAVING count(*) > 1 LIMIT 1").format(
                table.key.as_key,
                table.name,
                condition(KeyRange(), table, self._plan, self._since, values=True),
                sql.Identifier(table.key.name),
            )
            row = self._line.execute(asked).fetchone()
            return None if row is None else row[0]

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        with _told(self._plan):
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
        asked = sql.SQL("EXPLAIN (FORMAT JSON) SELECT 1 FROM {} WHERE {}").format(table.name, where)
        row = self._line.execute(asked).fetchone()
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
        """A share of the keys, in order; of a large table from some of its blocks only.

        The share comes from an estimate, which of a view may be anything: keys are thinned as they arrive.
        """
        blocks = 1.0
        if from_all and table.blocks > 2 * _SAMPLE_BLOCKS:
            blocks = max(share, _SAMPLE_BLOCKS / table.blocks)
        drawn = sql.SQL("TABLESAMPLE SYSTEM ({})").format(100 * blocks) if blocks < 1.0 else sql.SQL("")
        chance = min(1.0, share / blocks)
        column = sql.Identifier(table.key.name)
        asked = sql.SQL("SELECT {} FROM {} {} WHERE {} AND random() < {} ORDER BY {}").format(
            table.key.as_key, table.name, drawn, where, chance if chance < 1 else 2, column
        )
        with self._line.cursor(name="levada_sample", withhold=False) as cursor:
            cursor.itersize = _FETCH
            return thinned((row[0] for row in cursor.execute(asked)), size)

    def _count(self, asked: sql.Composed) -> int:
        row = self._line.execute(asked).fetchone()
        return int(row[0]) if row is not None else 0

    def _read_integers(
        self, table: Relation, span: Span, where: sql.Composable, limit: int | None
    ) -> RowBatch | None:
        from levada.adapters.bulk.postgresql_arrays import closeness, read_columns, read_stream

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
        asked = sql.SQL("SELECT {}, {} FROM {} WHERE {}").format(
            table.key.as_key, table.value.as_value, table.name, where
        )
        keys, values, nulls, room = list[Any](), list[Any](), 0, (limit or 0) * _ROW_BYTES
        with self._line.cursor(name="levada_task", withhold=False) as cursor:
            cursor.itersize = _FETCH
            for key, value in cursor.execute(asked):
                if value is None:
                    nulls += 1
                    continue
                keys.append(key)
                values.append(value)
                room -= len(value) if isinstance(value, str | bytes) else 0
                if limit is not None and (len(keys) > limit or room < 0):
                    return None
        kinds = ("int" if table.key.whole else "text", "int" if table.value.whole else "any")
        return PlainRows(keys, values, kinds, nulls)


@contextmanager
def _told(plan: LoadPlan) -> Iterator[None]:
    """What PostgreSQL says, in one line."""
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
