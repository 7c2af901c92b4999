"""The tables and columns that a SQL statement refers to, and the values in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec
from pglast import ast
from pglast.enums import JoinType

from levada.sharding.queries import Scalar

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d{1,15}", re.ASCII)
_DEEPEST_VALUE = 20


class Known(NamedTuple):
    """A known value. (None in place of it means an unknown one.)"""

    value: Scalar


Parameters: TypeAlias = Mapping[int, Known]


def value_of(node: Any, parameters: Parameters, depth: int = 0) -> Known | None:
    """The value of constants, also cast or negated, and of parameters that the log names."""
    if depth > _DEEPEST_VALUE:
        return None
    if isinstance(node, ast.TypeCast):
        return value_of(node.arg, parameters, depth + 1)
    if isinstance(node, ast.ParamRef):
        return parameters.get(node.number or 0)
    if isinstance(node, ast.A_Expr) and node.lexpr is None and node.name and node.name[-1].sval == "-":
        inside = value_of(node.rexpr, parameters, depth + 1)
        negative = isinstance(inside, Known) and isinstance(inside.value, (int, float))
        return Known(-inside.value) if negative and inside else None  # type: ignore[operator]
    return _constant(node) if isinstance(node, ast.A_Const) else None


def _constant(node: Any) -> Known | None:
    if node.isnull:
        return Known(None)
    value = node.val
    if isinstance(value, ast.Integer):
        return Known(value.ival or 0)
    if isinstance(value, ast.Float):
        return Known(number_or_text(value.fval or "0"))
    if isinstance(value, ast.Boolean):
        return Known(bool(value.boolval))
    return Known(value.sval) if isinstance(value, ast.String) else None


def number_or_text(text: str) -> Scalar:
    """A number if the text is written as one; a log quotes numbers and texts alike."""
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


Columns = Mapping[str, frozenset[str]]  # of each table, if a server gave them
_DEEPEST_SCOPE = 100
_SYSTEM = ("pg_catalog", "information_schema", "pg_toast")


class Table(msgspec.Struct, frozen=True):
    name: str  # schema.table
    alias: str


class Scope(msgspec.Struct):
    """The tables of one level of a statement, and their joins."""

    tables: list[Table]
    parameters: Parameters
    columns: Columns
    joins: list[tuple[Any, frozenset[str]]] = []  # a condition, and the aliases that it restricts
    subselects: list[Any] = []
    foreign: set[str] = set()  # aliases that are not tables: subselects, functions, results of WITH

    def owner(self, parts: list[str]) -> str | None:
        """The alias of the table that a column belongs to; None if that is unknown."""
        if len(parts) > 1:
            name = f"{parts[-3]}.{parts[-2]}" if len(parts) > 2 else None
            return next((each.alias for each in self.tables if parts[-2] == each.alias or name == each.name), None)
        if len(self.tables) == 1 and not self.foreign:
            return self.tables[0].alias
        found = [each.alias for each in self.tables if parts[0] in self.columns.get(each.name, frozenset())]
        return found[0] if len(found) == 1 else None


def table_of(node: Any) -> Table | None:
    """The table's name; None for system tables."""
    schema = node.schemaname or "public"
    if schema in _SYSTEM or node.relname.startswith("pg_"):
        return None
    return Table(f"{schema}.{node.relname}", node.alias.aliasname if node.alias else node.relname)


def column_parts(node: Any) -> list[str]:
    """Schema, table and column, as far as they are given; empty for `*`."""
    parts = [str(field.sval) for field in node.fields if isinstance(field, ast.String)]
    return parts if len(parts) == len(node.fields) else []


def read_from(clause: Any, scope: Scope, results: frozenset[str], depth: int = 0) -> list[str]:
    """Add the tables of a FROM to the scope; returns their aliases."""
    if depth > _DEEPEST_SCOPE or clause is None:
        return []
    if isinstance(clause, ast.JoinExpr):
        return _read_join(clause, scope, results, depth)
    name = ""
    if isinstance(clause, ast.RangeVar):
        name = clause.relname or ""
        table = None if not clause.schemaname and name in results else table_of(clause)
        if table is not None:
            scope.tables.append(table)
            return [table.alias]
    elif isinstance(clause, ast.RangeSubselect):
        scope.subselects.append(clause.subquery)
    alias = getattr(clause, "alias", None)
    scope.foreign.add(alias.aliasname if alias else name)
    return []


def _read_join(node: Any, scope: Scope, results: frozenset[str], depth: int) -> list[str]:
    left = read_from(node.larg, scope, results, depth + 1)
    right = read_from(node.rarg, scope, results, depth + 1)
    restricted = {
        JoinType.JOIN_INNER: [*left, *right],
        JoinType.JOIN_LEFT: right,  # rows of the left side stay, whatever the condition
        JoinType.JOIN_RIGHT: left,
    }.get(node.jointype, [])
    if node.quals is not None:
        scope.joins.append((node.quals, frozenset(restricted)))
    return [*left, *right]
