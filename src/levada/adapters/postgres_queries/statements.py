"""Which queries does a statement of SQL make?

One for each table of each SELECT in it, wherever that stands: joined, in WITH, in FROM, or in a condition. The
system's own tables are nobody's query.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from msgspec.structs import replace
from pglast import ast, parse_sql
from pglast.enums import OnConflictAction, SetOperation, SortByDir
from pglast.parser import ParseError

from levada.adapters.postgres_queries.conditions import TableConditions
from levada.adapters.postgres_queries.scope import Columns, Scope, column_parts, read_from, table_of
from levada.adapters.postgres_queries.values import Parameters, value_of
from levada.adapters.postgres_queries.walking import nested_selects
from levada.sharding.asked import AllOf, AskedQuery, Filter, Sort

__all__ = ["LONGEST_STATEMENT", "NotSql", "asked_of_sql"]

LONGEST_STATEMENT = 128 << 10  # characters
_LONG = 16 << 10
_DEEP_STACK = 256 << 20  # the parser recurses without a limit of its own: a long chain of operators needs room
_MOST_QUERIES = 1_000  # of one statement
_COUNTS = ("count",)


class NotSql(Exception):
    """It could not be parsed; the text says why."""


def asked_of_sql(
    sql: str, parameters: Parameters | None = None, columns: Columns | None = None
) -> list[AskedQuery]:
    """The queries of a statement, or of several; none where it asks nothing of a table."""
    if len(sql) > LONGEST_STATEMENT:
        raise NotSql("longer than 128 KB")
    if "\0" in sql:  # the parser would take it for the end
        raise NotSql("there is a zero in it")
    if len(sql) > _LONG:
        return _deep_thread().submit(_read_all, sql, parameters or {}, columns or {}).result()
    return _read_all(sql, parameters or {}, columns or {})


@cache
def _deep_thread() -> ThreadPoolExecutor:
    before = threading.stack_size(_DEEP_STACK)
    try:
        pool = ThreadPoolExecutor(1)
        pool.submit(int).result()  # its thread is made by the first work
    finally:
        threading.stack_size(before)
    return pool


def _read_all(sql: str, parameters: Parameters, columns: Columns) -> list[AskedQuery]:
    try:
        statements = parse_sql(sql)
    except (ParseError, ValueError, RecursionError) as error:
        raise NotSql(str(error).partition(",")[0][:100]) from None
    found: list[AskedQuery] = []
    reader = _Reader(parameters, columns, found)
    for statement in statements:
        reader.read(statement.stmt, frozenset())
    return found[:_MOST_QUERIES]


class _Reader:
    def __init__(self, parameters: Parameters, columns: Columns, found: list[AskedQuery]) -> None:
        self._parameters = parameters
        self._columns = columns
        self._found = found

    def read(self, node: Any, results: frozenset[str]) -> None:
        """One statement and those inside it; `results` are the names that WITH gives."""
        reader = _READERS.get(type(node))
        if reader is None or len(self._found) >= _MOST_QUERIES:
            return
        if node.withClause is not None:
            results |= {each.ctename for each in node.withClause.ctes}
            for each in node.withClause.ctes:
                self.read(each.ctequery, results)
        reader(self, node, results)

    def _select(self, node: Any, results: frozenset[str]) -> None:
        if node.op != SetOperation.SETOP_NONE:
            self.read(node.larg, results)
            self.read(node.rarg, results)
            return
        scope = self._scope(node.fromClause, results)
        names = _functions(node.targetList)
        op = "aggregate" if node.groupClause else "distinct" if node.distinctClause else "find"
        if op == "find" and names:
            op = "count" if names <= set(_COUNTS) else "aggregate"
        limit = value_of(node.limitCount, self._parameters)
        kept = limit.value if limit is not None and isinstance(limit.value, int) else None
        for alias, query in self._of_tables(scope, node.whereClause, op):
            sort = _sort(node.sortClause, scope, alias)
            self._found.append(replace(query, sort=sort, limit=kept))
        self._inside(node, scope, results, node.targetList, node.whereClause, node.havingClause)

    def _insert(self, node: Any, results: frozenset[str]) -> None:
        table = table_of(node.relation)
        rows = getattr(node.selectStmt, "valuesLists", None) or ()
        conflict = node.onConflictClause
        updates = conflict is not None and conflict.action == OnConflictAction.ONCONFLICT_UPDATE
        if table is not None:
            changes = _targets(conflict.targetList) if updates else ()
            inserted = len(rows) or (1 if node.selectStmt is None else 0)
            self._found.append(AskedQuery(table.name, "insert", inserted=inserted, changes=changes, upsert=updates))
        if node.selectStmt is not None and not rows:
            self.read(node.selectStmt, results)

    def _update(self, node: Any, results: frozenset[str]) -> None:
        self._write(node, results, node.fromClause, "update", _targets(node.targetList))
        self._subselects(results, node.targetList, node.whereClause)

    def _delete(self, node: Any, results: frozenset[str]) -> None:
        self._write(node, results, node.usingClause, "delete", ())
        self._subselects(results, node.whereClause)

    def _write(self, node: Any, results: frozenset[str], beside: Any, op: str, changes: tuple[str, ...]) -> None:
        """The first table is written to, the others are only read."""
        scope = self._scope((node.relation, *(beside or ())), results)
        written = table_of(node.relation)
        for alias, query in self._of_tables(scope, node.whereClause, "find"):
            if written is not None and alias == written.alias:
                query = replace(query, op=op, changes=changes, many=True)
            self._found.append(query)
        for each in scope.subselects:
            self.read(each, results)

    def _scope(self, clauses: Any, results: frozenset[str]) -> Scope:
        scope = Scope([], self._parameters, self._columns)
        for clause in clauses or ():
            list(read_from(clause, scope, results))
        return scope

    def _of_tables(self, scope: Scope, where: Any, op: str) -> Iterator[tuple[str, AskedQuery]]:
        for table in scope.tables:
            conditions = TableConditions(scope, table.alias)
            parts = [conditions.read(join) for join, narrowed in scope.joins if table.alias in narrowed]
            parts.append(conditions.read(where) if where is not None else None)
            joined = tuple(dict.fromkeys(other.name for other in scope.tables if other != table))
            yield table.alias, AskedQuery(table.name, op, filter=_all_of(parts), joined=joined)

    def _inside(self, node: Any, scope: Scope, results: frozenset[str], *places: Any) -> None:
        for each in scope.subselects:
            self.read(each, results)
        self._subselects(results, *places)

    def _subselects(self, results: frozenset[str], *places: Any) -> None:
        for place in places:
            for select in nested_selects(place):
                self.read(select, results)


def _all_of(parts: list[Filter | None]) -> Filter | None:
    found = tuple(part for part in parts if part is not None)
    return AllOf(found) if len(found) > 1 else next(iter(found), None)


def _targets(listed: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(target.name for target in listed or () if target.name))


def _functions(targets: Any) -> set[str]:
    """Names of the aggregate functions that stand alone in a SELECT; which ones aggregate only a server knows."""
    calls: list[Any] = [target.val for target in targets or () if isinstance(target.val, ast.FuncCall)]
    return {call.funcname[-1].sval for call in calls} & {
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "array_agg",
        "json_agg",
    }


def _sort(clause: Any, scope: Scope, alias: str) -> tuple[Sort, ...]:
    found = []
    for each in clause or ():
        parts = column_parts(each.node) if isinstance(each.node, ast.ColumnRef) else []
        if parts and scope.owner(parts) == alias:
            found.append(Sort(parts[-1], each.sortby_dir != SortByDir.SORTBY_DESC))
    return tuple(found)


_READERS: Mapping[type, Callable[[_Reader, Any, frozenset[str]], None]] = {
    ast.SelectStmt: _Reader._select,
    ast.InsertStmt: _Reader._insert,
    ast.UpdateStmt: _Reader._update,
    ast.DeleteStmt: _Reader._delete,
}
