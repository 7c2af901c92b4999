"""Which value does an expression of SQL stand for, if that can be said without a server?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from pglast import ast

from levada.sharding.asked import Scalar

__all__ = ["Known", "Parameters", "list_of", "number_or_text", "value_of"]

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d{1,15}", re.ASCII)
_DEEPEST = 20


class Known(NamedTuple):
    """A value that is known; None stands for one that is not."""

    value: Scalar


Parameters: TypeAlias = Mapping[int, Known]


def value_of(node: Any, parameters: Parameters, depth: int = 0) -> Known | None:
    """Constants, also cast or negated, and parameters that the log names."""
    if depth > _DEEPEST:
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


def list_of(node: Any, parameters: Parameters) -> list[Any] | Known | None:
    """The members of what stands behind ANY: nodes, or an array as one text; None: not known."""
    if isinstance(node, ast.TypeCast):
        return list_of(node.arg, parameters)
    if isinstance(node, ast.A_ArrayExpr):
        return list(node.elements or ())
    return value_of(node, parameters)
