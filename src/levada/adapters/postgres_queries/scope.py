"""Which table does a column of a statement belong to?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from pglast import ast
from pglast.enums import JoinType

from levada.adapters.postgres_queries.values import Parameters

__all__ = ["Columns", "Scope", "Table", "column_parts", "read_from", "table_of"]

Columns = Mapping[str, frozenset[str]]  # of each table, where a server told them
_DEEPEST = 100
_SYSTEM = ("pg_catalog", "information_schema", "pg_toast")


class Table(msgspec.Struct, frozen=True):
    name: str  # schema.table
    alias: str


class Scope(msgspec.Struct):
    """The tables of one level of a statement, and what joins them."""

    tables: list[Table]
    parameters: Parameters
    columns: Columns
    joins: list[tuple[Any, frozenset[str]]] = []  # a condition, and the aliases that it narrows
    subselects: list[Any] = []
    foreign: set[str] = set()  # aliases that are no tables: subselects, functions, results of WITH

    def owner(self, parts: list[str]) -> str | None:
        """The alias of the table that a column belongs to; None: that cannot be said."""
        if len(parts) > 1:
            return self._by_alias(parts)
        if len(self.tables) == 1 and not self.foreign:
            return self.tables[0].alias
        found = [each.alias for each in self.tables if parts[0] in self.columns.get(each.name, frozenset())]
        return found[0] if len(found) == 1 else None

    def _by_alias(self, parts: list[str]) -> str | None:
        for table in self.tables:
            if parts[-2] == table.alias or (len(parts) > 2 and f"{parts[-3]}.{parts[-2]}" == table.name):
                return table.alias
        return None


def table_of(node: Any) -> Table | None:
    """None for the system's own tables."""
    schema = node.schemaname or "public"
    if schema in _SYSTEM or node.relname.startswith("pg_"):
        return None
    return Table(f"{schema}.{node.relname}", node.alias.aliasname if node.alias else node.relname)


def column_parts(node: Any) -> list[str]:
    """schema, table and column, as far as they are said; empty for `*`."""
    parts = [str(field.sval) for field in node.fields if isinstance(field, ast.String)]
    return parts if len(parts) == len(node.fields) else []


def read_from(clause: Any, scope: Scope, results: frozenset[str], depth: int = 0) -> Iterator[str]:
    """Adds the tables of a FROM to the scope; yields their aliases."""
    if depth > _DEEPEST or clause is None:
        return
    if isinstance(clause, ast.RangeVar):
        yield from _read_table(clause, scope, results)
    elif isinstance(clause, ast.JoinExpr):
        yield from _read_join(clause, scope, results, depth)
    else:
        if isinstance(clause, ast.RangeSubselect):
            scope.subselects.append(clause.subquery)
        alias = getattr(clause, "alias", None)
        scope.foreign.add(alias.aliasname if alias else "")


def _read_table(node: Any, scope: Scope, results: frozenset[str]) -> Iterator[str]:
    table = None if not node.schemaname and node.relname in results else table_of(node)
    if table is None:
        scope.foreign.add(node.alias.aliasname if node.alias else node.relname)
        return
    scope.tables.append(table)
    yield table.alias


def _read_join(node: Any, scope: Scope, results: frozenset[str], depth: int) -> Iterator[str]:
    left = list(read_from(node.larg, scope, results, depth + 1))
    right = list(read_from(node.rarg, scope, results, depth + 1))
    narrowed = {
        JoinType.JOIN_INNER: [*left, *right],
        JoinType.JOIN_LEFT: right,  # rows of the left side stay, whatever the condition says
        JoinType.JOIN_RIGHT: left,
    }.get(node.jointype, [])
    if node.quals is not None:
        scope.joins.append((node.quals, frozenset(narrowed)))
    yield from left
    yield from right
