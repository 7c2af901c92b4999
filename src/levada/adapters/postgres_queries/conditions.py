"""Which conditions does a WHERE make of one table?

What concerns another table narrows nothing of this one: it is left out where all must hold, and stands as
`other:elsewhere` where one of several must.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pglast import ast
from pglast.enums import A_Expr_Kind as Kind
from pglast.enums import BoolExprType, BoolTestType, NullTestType

from levada.adapters.postgres_queries.comparisons import compared, contained, like
from levada.adapters.postgres_queries.scope import Scope, column_parts
from levada.adapters.postgres_queries.values import value_of
from levada.sharding.asked import AllOf, AnyOf, Condition, Filter, NoneOf

__all__ = ["TableConditions"]

_DEEPEST = 100
_MOST_PARTS = 10_000
_ELSEWHERE = Condition("", "other:elsewhere")
_PATHS = ("->", "->>")


class TableConditions:
    """Reads expressions from the view of one table."""

    def __init__(self, scope: Scope, alias: str) -> None:
        self._scope = scope
        self._alias = alias

    def read(self, node: Any, depth: int = 0) -> Filter | None:
        """None where nothing is asked of this table."""
        if depth > _DEEPEST:
            return Condition("", "other:too-deep")
        reader = _READERS.get(type(node))
        if reader is not None:
            return reader(self, node, depth)
        field = self._field(node)
        return Condition(field, "eq", (True,)) if field else None  # a column that is true or false itself

    def _bool(self, node: Any, depth: int) -> Filter | None:
        parts = [self.read(part, depth + 1) for part in node.args[:_MOST_PARTS]]
        found = tuple(part for part in parts if part is not None)
        if not found:
            return None
        if node.boolop == BoolExprType.NOT_EXPR:
            return NoneOf(found)
        if node.boolop == BoolExprType.OR_EXPR:
            return AnyOf(tuple(_ELSEWHERE if part is None else part for part in parts))
        return AllOf(found) if len(found) > 1 else found[0]

    def _null(self, node: Any, depth: int) -> Filter | None:
        field = self._field(node.arg)
        if not field:
            return None
        empty = node.nulltesttype == NullTestType.IS_NULL
        return Condition(field, "eq", (None,)) if empty else Condition(field, "exists", (True,))

    def _truth(self, node: Any, depth: int) -> Filter | None:
        field = self._field(node.arg)
        wanted = {BoolTestType.IS_TRUE: True, BoolTestType.IS_FALSE: False}.get(node.booltesttype)
        if not field:
            return None
        return Condition(field, "other:is") if wanted is None else Condition(field, "eq", (wanted,))

    def _sublink(self, node: Any, depth: int) -> Filter | None:
        field = self._field(node.testexpr)
        return Condition(field, "other:subquery") if field else None

    def _expression(self, node: Any, depth: int) -> Filter | None:
        if isinstance(node.lexpr, ast.RowExpr) and isinstance(node.rexpr, ast.RowExpr):
            return self._row(node, depth)
        field, other, swapped = self._field(node.lexpr), node.rexpr, False
        if not field and isinstance(node.rexpr, ast.Node) and node.kind == Kind.AEXPR_OP:
            field, other, swapped = self._field(node.rexpr), node.lexpr, True
        if not field:
            return None
        if isinstance(other, ast.Node) and self._is_column(other):
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
        found = tuple(part for part in parts if part is not None)
        if node.name[-1].sval != "=":
            return parts[0] if parts else None
        return AllOf(found) if len(found) > 1 else next(iter(found), None)

    def _is_column(self, node: Any) -> bool:
        return bool(self._path(node)[0])

    def _field(self, node: Any) -> str:
        """The column, if it is one of this table; with the path into it, if it holds JSON."""
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


_READERS: dict[type, Callable[[TableConditions, Any, int], Filter | None]] = {
    ast.BoolExpr: TableConditions._bool,
    ast.NullTest: TableConditions._null,
    ast.BooleanTest: TableConditions._truth,
    ast.SubLink: TableConditions._sublink,
    ast.A_Expr: TableConditions._expression,
}
