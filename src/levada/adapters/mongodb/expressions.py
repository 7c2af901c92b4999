"""Which conditions does an aggregation expression make of fields?

Only what compares a field with a constant, and `$and`, `$or` of such; everything else narrows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from levada.adapters.mongodb.values import scalar
from levada.sharding.asked import AllOf, AnyOf, Condition, Filter, Scalar

__all__ = ["expression"]

_DEEPEST = 120
_MOST = 1_000
_SWAPPED = {"$gt": "$lt", "$gte": "$lte", "$lt": "$gt", "$lte": "$gte", "$eq": "$eq"}


def expression(asked: Any, depth: int) -> Iterator[Filter]:
    """What `$expr` asks for."""
    name, operands = _operator(asked)
    if depth <= _DEEPEST and name in ("$and", "$or") and operands:
        parts = [part for each in operands[:_MOST] for part in expression(each, depth + 1)]
        yield AllOf(tuple(parts)) if name == "$and" else AnyOf(tuple(parts))
    elif depth <= _DEEPEST and (found := _compared(name, operands)):
        yield found
    else:
        yield Condition("", "other:expr")


def _operator(asked: Any) -> tuple[str, list[Any]]:
    if not isinstance(asked, dict) or len(asked) != 1:
        return "", []
    name, operands = next(iter(asked.items()))
    return name, operands if isinstance(operands, list) else []


def _compared(name: str, operands: list[Any]) -> Condition | None:
    if len(operands) != 2 or name not in _SWAPPED:
        return None
    left, right = operands
    if not _is_field(left):
        left, right, name = right, left, _SWAPPED[name]
    if not _is_field(left) or _is_field(right):
        return None
    constant = _constant(right)
    return None if constant is None else _condition(left[1:], name, constant[0])


def _condition(field: str, name: str, value: Scalar) -> Condition:
    if name == "$eq":
        return Condition(field, "eq", (value,))
    return Condition(field, "range", (value, None) if name in ("$gt", "$gte") else (None, value))


def _is_field(operand: Any) -> bool:
    return isinstance(operand, str) and operand.startswith("$") and not operand.startswith("$$")


def _constant(operand: Any) -> tuple[Scalar] | None:
    """A value that stands for itself; expressions and variables do not."""
    if isinstance(operand, dict):
        return (scalar(operand["$literal"]),) if list(operand) == ["$literal"] else None
    if isinstance(operand, list) or (isinstance(operand, str) and operand.startswith("$")):
        return None
    return (scalar(operand),)
