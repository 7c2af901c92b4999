"""What is this table of a PostgreSQL, and may we read it?"""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from levada.bulk.generations import LoadPlan
from levada.bulk.near import near_names
from levada.errors import Refused, UsageError

__all__ = ["INTEGERS", "Column", "Relation", "relation_of"]

INTEGERS = {"int2", "int4", "int8"}
_TEXTS = {"text", "varchar"}
_VALUES = _TEXTS | {"float4", "float8", "bool", "bytea"}  # come as Python objects; the rest as text
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
_TYPMOD = 4  # less this, a numeric's has its digits in the upper 16 bits and its decimals in the lower
_SURE_DIGITS = 18  # any integer of so many fits into 64 bits; not every one of 19 does


class Column(NamedTuple):
    name: str
    type: str
    nullable: bool
    orderly: bool
    number: int
    narrow: bool  # of a numeric: without decimals, and of 64 bits whatever its digits

    @property
    def whole(self) -> bool:
        return self.type in INTEGERS or (self.type == "numeric" and self.narrow)

    @property
    def as_key(self) -> sql.Composable:
        """As it is read: integers as such, anything else as the text that the map is asked by."""
        return self._read_as(_TEXTS)

    @property
    def as_value(self) -> sql.Composable:
        """As it is read: integers as such, what Python knows as it is, anything else as text."""
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
    key: Column
    value: Column
    watermark: Column | None
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


def _columns(line: psycopg.Connection[Any], oid: int) -> dict[str, tuple[Column, bool]]:
    found = {}
    for name, type_name, required, orderly, number, allowed, typmod in line.execute(_COLUMNS, (oid,)):
        column = Column(name, type_name, not required, orderly, number, _narrow(typmod))
        found[name] = (column, allowed)
    return found


def _narrow(typmod: int) -> bool:
    digits, decimals = divmod(typmod - _TYPMOD, 1 << 16)
    return decimals == 0 and 0 < digits <= _SURE_DIGITS


def _column(plan: LoadPlan, asked: str, columns: dict[str, tuple[Column, bool]]) -> Column:
    if asked not in columns:
        raise UsageError(f"{plan.table} has no column {asked!r}: {near_names(asked, columns)}")
    column, allowed = columns[asked]
    if not allowed:
        raise Refused(f"column {asked} of {plan.table} may not be read: ask for GRANT SELECT on it")
    return column


def _row(done: psycopg.Cursor[Any]) -> tuple[bool, bool]:
    row = done.fetchone()
    return (bool(row[0]), bool(row[1])) if row is not None else (False, False)
