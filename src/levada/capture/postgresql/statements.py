"""Queries made by a SQL statement.

There is one for each table of each SELECT in it, wherever that is: joined, in WITH, in FROM, or in a condition.
System tables are left out. A condition on another table does not prune this one: it is left out where all
conditions must hold, and becomes `other:elsewhere` where one of several must.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pglast import ast, parse_sql
from pglast.enums import A_Expr_Kind as Kind
from pglast.enums import BoolExprType, BoolTestType, NullTestType, OnConflictAction, SetOperation, SortByDir
from pglast.parser import ParseError

from levada.capture.postgresql.scope import (
    Columns,
    Known,
    Parameters,
    Scope,
    column_parts,
    number_or_text,
    read_from,
    table_of,
    value_of,
)
from levada.sharding.queries import AnyOf, Condition, Filter, NoneOf, QueryEntry, Sort, all_of

_MOST_NODES = 100_000


def nested_selects(place: Any) -> Iterator[Any]:
    """The outermost SELECTs, found without recursion; what is inside them is found when they are read."""
    waiting, visited = [place], 0
    while waiting and visited < _MOST_NODES:
        node = waiting.pop()
        visited += 1
        if isinstance(node, ast.SubLink):
            yield node.subselect
        elif isinstance(node, (tuple, list)):
            waiting.extend(node)
        elif isinstance(node, ast.Node):
            waiting.extend(getattr(node, name) for name in getattr(node, "__slots__", ()))


_MOST_VALUES = 2_000
_LOW, _HIGH = (">", ">="), ("<", "<=")
_NAMES = {"<>": "ne", "!=": "ne", "@@": "text"}
_PATTERN = re.compile(r"((?:[^%_\\]|\\.)*)(.*)", re.DOTALL)
_ARRAY_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)', re.DOTALL)


def compared(field: str, name: str, value: Known | None, swapped: bool) -> Condition:
    """`field OPERATOR value`, or the other way round."""
    if name == "=":
        return Condition(field, "eq", () if value is None else (value.value,))
    if name in _LOW or name in _HIGH:
        if value is None:
            return Condition(field, "range")
        is_low = (name in _LOW) != swapped
        return Condition(field, "range", (value.value, None) if is_low else (None, value.value))
    if name == "@@":
        return Condition(field, "text")
    if name in ("~", "~*"):
        return Condition(field, "regex")
    kept = () if value is None or name not in _NAMES else (value.value,)
    return Condition(field, f"other:{_NAMES.get(name, name)}", kept)


def contained(field: str, name: str, members: Any, parameters: Parameters) -> Condition:
    """IN (...), = ANY (...), and their negations."""
    if name != "=":
        return Condition(field, "other:nin" if name == "<>" else f"other:any {name}")
    while isinstance(members, ast.TypeCast):
        members = members.arg
    if isinstance(members, ast.A_ArrayExpr):
        members = members.elements or ()
    if not isinstance(members, tuple):
        return _of_array_text(field, value_of(members, parameters))
    values = [value_of(member, parameters) for member in members[:_MOST_VALUES]]
    known = tuple(value.value for value in values if value is not None)
    return Condition(field, "in", known if len(known) == len(members) else (), len(members))


def _of_array_text(field: str, text: Known | None) -> Condition:
    """An array written as a parameter: {1,2,"three, or four"}."""
    if text is None or not isinstance(text.value, str) or not text.value.startswith("{"):
        return Condition(field, "in")
    found = [
        re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if quoted or not plain else number_or_text(plain)
        for quoted, plain in _ARRAY_TEXT.findall(text.value)
    ]
    return Condition(field, "in", tuple(found) if len(found) <= _MOST_VALUES else (), len(found))


def like(field: str, name: str, pattern: Known | None) -> Condition:
    """A pattern that begins with plain text is a prefix condition."""
    if name != "~~":
        return Condition(field, "other:notlike")
    if pattern is None or not isinstance(pattern.value, str):
        return Condition(field, "regex")
    found = _PATTERN.match(pattern.value)
    beginning, rest = (found[1], found[2]) if found else ("", "%")
    text = re.sub(r"\\(.)", r"\1", beginning, flags=re.DOTALL)
    if not rest:
        return Condition(field, "eq", (text,))
    return Condition(field, "prefix", (text,)) if text else Condition(field, "regex")


_DEEPEST = 100
_MOST_PARTS = 10_000
_ELSEWHERE = Condition("", "other:elsewhere")
_PATHS = ("->", "->>")
_TRUTHS: dict[Any, bool] = {BoolTestType.IS_TRUE: True, BoolTestType.IS_FALSE: False}


class TableConditions:
    """Reads expressions for one table."""

    def __init__(self, scope: Scope, alias: str) -> None:
        self._scope = scope
        self._alias = alias

    def read(self, node: Any, depth: int = 0) -> Filter | None:
        """The filter; None if nothing restricts this table."""
        if depth > _DEEPEST:
            return Condition("", "other:too-deep")
        if isinstance(node, ast.BoolExpr):
            return self._bool(node, depth)
        if isinstance(node, ast.A_Expr):
            return self._expression(node, depth)
        if isinstance(node, ast.SubLink):
            field = self._field(node.testexpr)
            return Condition(field, "other:subquery") if field else None
        field = self._field(node.arg if isinstance(node, (ast.NullTest, ast.BooleanTest)) else node)
        if not field:
            return None
        if isinstance(node, ast.NullTest):
            empty = node.nulltesttype == NullTestType.IS_NULL
            return Condition(field, "eq", (None,)) if empty else Condition(field, "exists", (True,))
        wanted = _TRUTHS.get(node.booltesttype) if isinstance(node, ast.BooleanTest) else True  # a boolean column
        return Condition(field, "other:is") if wanted is None else Condition(field, "eq", (wanted,))

    def _bool(self, node: Any, depth: int) -> Filter | None:
        parts = [self.read(part, depth + 1) for part in node.args[:_MOST_PARTS]]
        found = tuple(part for part in parts if part is not None)
        if not found:
            return None
        if node.boolop == BoolExprType.NOT_EXPR:
            return NoneOf(found)
        if node.boolop == BoolExprType.OR_EXPR:
            return AnyOf(tuple(_ELSEWHERE if part is None else part for part in parts))
        return all_of(parts)

    def _expression(self, node: Any, depth: int) -> Filter | None:
        if isinstance(node.lexpr, ast.RowExpr) and isinstance(node.rexpr, ast.RowExpr):
            return self._row(node, depth)
        field, other, swapped = self._field(node.lexpr), node.rexpr, False
        if not field and isinstance(node.rexpr, ast.Node) and node.kind == Kind.AEXPR_OP:
            field, other, swapped = self._field(node.rexpr), node.lexpr, True
        if not field:
            return None
        if self._path(other)[0]:
            return Condition(field, "other:join")
        return self._compared(node, field, other, swapped)

    def _compared(self, node: Any, field: str, other: Any, swapped: bool) -> Condition:
        name, parameters = node.name[-1].sval, self._scope.parameters
        if node.kind in (Kind.AEXPR_IN, Kind.AEXPR_OP_ANY):
            return contained(field, name, other, parameters)
        if node.kind in (Kind.AEXPR_BETWEEN, Kind.AEXPR_BETWEEN_SYM):
            ends = [value_of(end, parameters) for end in other]
            known = tuple(end.value for end in ends if end is not None)
            return Condition(field, "range", known if len(known) == 2 else ())
        if node.kind == Kind.AEXPR_LIKE:
            return like(field, name, value_of(other, parameters))
        if node.kind in (Kind.AEXPR_OP, Kind.AEXPR_NOT_DISTINCT):
            return compared(field, name, value_of(other, parameters), swapped)
        return Condition(field, f"other:{name.lower()}")

    def _row(self, node: Any, depth: int) -> Filter | None:
        """(a, b) = (1, 2) is both; (a, b) > (1, 2) is a range of the first."""
        pairs = zip(node.lexpr.args, node.rexpr.args, strict=False)
        parts = [self.read(ast.A_Expr(node.kind, node.name, left, right), depth + 1) for left, right in pairs]
        return all_of(parts if node.name[-1].sval == "=" else parts[:1])

    def _field(self, node: Any) -> str:
        """The column, if it belongs to this table; with the path into it, if it holds JSON."""
        parts, path = self._path(node)
        if not parts or self._scope.owner(parts) != self._alias:
            return ""
        return ".".join([parts[-1], *path])

    def _path(self, node: Any) -> tuple[list[str], list[str]]:
        path: list[str] = []
        for _ in range(_DEEPEST):
            if isinstance(node, ast.TypeCast):
                node = node.arg
            elif isinstance(node, ast.A_Expr) and node.name and node.name[-1].sval in _PATHS:
                step = value_of(node.rexpr, {})
                path.insert(0, str(step.value) if step else "?")
                node = node.lexpr
            else:
                break
        return (column_parts(node), path) if isinstance(node, ast.ColumnRef) else ([], [])


LONGEST_STATEMENT = 128 << 10  # characters
_LONG = 16 << 10
_DEEP_STACK = 256 << 20  # the parser recurses without a limit of its own: a long chain of operators needs stack
_MOST_QUERIES = 1_000  # of one statement
_AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "array_agg", "json_agg"})


class NotSql(Exception):
    """A statement that cannot be parsed; the text says why."""


class StatementReading(Struct):
    """Counts of the statements that were read."""

    statements: int = 0
    queries: int = 0
    silent: int = 0  # statements without a user's table
    unparsed: int = 0  # statements that PostgreSQL's grammar does not know

    def queries_of(
        self, sql: str, parameters: Parameters | None = None, columns: Columns | None = None
    ) -> list[QueryEntry]:
        self.statements += 1
        try:
            found = queries_of_sql(sql, parameters, columns)
        except NotSql:
            self.unparsed += 1
            return []
        self.silent += not found
        self.queries += len(found)
        return found


def queries_of_sql(sql: str, parameters: Parameters | None = None, columns: Columns | None = None) -> list[QueryEntry]:
    """The queries of a statement, or of several; none if it uses no table."""
    if len(sql) > LONGEST_STATEMENT:
        raise NotSql("longer than 128 KB")
    if "\0" in sql:  # the parser would take it for the end
        raise NotSql("it contains a zero byte")
    if len(sql) > _LONG:
        return _deep_thread().submit(_read_all, sql, parameters or {}, columns or {}).result()
    return _read_all(sql, parameters or {}, columns or {})


@cache
def _deep_thread() -> ThreadPoolExecutor:
    before = threading.stack_size(_DEEP_STACK)
    try:
        pool = ThreadPoolExecutor(1)
        pool.submit(int).result()  # the first job creates the thread
    finally:
        threading.stack_size(before)
    return pool


def _read_all(sql: str, parameters: Parameters, columns: Columns) -> list[QueryEntry]:
    try:
        statements = parse_sql(sql)
    except (ParseError, ValueError, RecursionError) as error:
        raise NotSql(str(error).partition(",")[0][:100]) from None
    found: list[QueryEntry] = []
    reader = _Reader(parameters, columns, found)
    for statement in statements:
        reader.read(statement.stmt, frozenset())
    return found[:_MOST_QUERIES]


class _Reader:
    def __init__(self, parameters: Parameters, columns: Columns, found: list[QueryEntry]) -> None:
        self._parameters = parameters
        self._columns = columns
        self._found = found

    def read(self, node: Any, results: frozenset[str]) -> None:
        """Read one statement and those inside it; `results` are the names that WITH gives."""
        reader = _STATEMENT_READERS.get(type(node))
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
            op = "count" if names == {"count"} else "aggregate"
        limit = value_of(node.limitCount, self._parameters)
        kept = limit.value if limit is not None and isinstance(limit.value, int) else None
        for alias, query in self._of_tables(scope, node.whereClause, op):
            sort = _sort(node.sortClause, scope, alias)
            self._found.append(replace(query, sort=sort, limit=kept))
        self._inside(scope, results, node.targetList, node.whereClause, node.havingClause)

    def _insert(self, node: Any, results: frozenset[str]) -> None:
        table = table_of(node.relation)
        rows = getattr(node.selectStmt, "valuesLists", None) or ()
        conflict = node.onConflictClause
        updates = conflict is not None and conflict.action == OnConflictAction.ONCONFLICT_UPDATE
        if table is not None:
            changes = _targets(conflict.targetList) if updates else ()
            inserted = len(rows) or (1 if node.selectStmt is None else 0)
            self._found.append(QueryEntry(table.name, "insert", inserted=inserted, changes=changes, upsert=updates))
        if node.selectStmt is not None and not rows:
            self.read(node.selectStmt, results)

    def _update(self, node: Any, results: frozenset[str]) -> None:
        self._write(node, results, node.fromClause, "update", node.targetList)

    def _delete(self, node: Any, results: frozenset[str]) -> None:
        self._write(node, results, node.usingClause, "delete", ())

    def _write(self, node: Any, results: frozenset[str], beside: Any, op: str, targets: Any) -> None:
        """The first table is written, the others are only read."""
        scope = self._scope((node.relation, *(beside or ())), results)
        written, changes = table_of(node.relation), _targets(targets)
        for alias, query in self._of_tables(scope, node.whereClause, "find"):
            if written is not None and alias == written.alias:
                query = replace(query, op=op, changes=changes, many=True)
            self._found.append(query)
        self._inside(scope, results, targets, node.whereClause)

    def _scope(self, clauses: Any, results: frozenset[str]) -> Scope:
        scope = Scope([], self._parameters, self._columns)
        for clause in clauses or ():
            read_from(clause, scope, results)
        return scope

    def _of_tables(self, scope: Scope, where: Any, op: str) -> Iterator[tuple[str, QueryEntry]]:
        for table in scope.tables:
            conditions = TableConditions(scope, table.alias)
            parts = [conditions.read(join) for join, restricted in scope.joins if table.alias in restricted]
            parts.append(conditions.read(where) if where is not None else None)
            joined = tuple(dict.fromkeys(other.name for other in scope.tables if other != table))
            yield table.alias, QueryEntry(table.name, op, filter=all_of(parts), joined=joined)

    def _inside(self, scope: Scope, results: frozenset[str], *places: Any) -> None:
        for select in chain(scope.subselects, *map(nested_selects, places)):
            self.read(select, results)


def _targets(listed: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(target.name for target in listed or () if target.name))


def _functions(targets: Any) -> set[str]:
    """Names of the functions that stand alone in a SELECT; which ones aggregate only a server knows."""
    calls: list[Any] = [target.val for target in targets or () if isinstance(target.val, ast.FuncCall)]
    return {call.funcname[-1].sval for call in calls} & _AGGREGATES


def _sort(clause: Any, scope: Scope, alias: str) -> tuple[Sort, ...]:
    found = []
    for each in clause or ():
        parts = column_parts(each.node) if isinstance(each.node, ast.ColumnRef) else []
        if parts and scope.owner(parts) == alias:
            found.append(Sort(parts[-1], each.sortby_dir != SortByDir.SORTBY_DESC))
    return tuple(found)


_STATEMENT_READERS: Mapping[type, Callable[[_Reader, Any, frozenset[str]], None]] = {
    ast.SelectStmt: _Reader._select,
    ast.InsertStmt: _Reader._insert,
    ast.UpdateStmt: _Reader._update,
    ast.DeleteStmt: _Reader._delete,
}
