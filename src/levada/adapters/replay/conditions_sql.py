"""How does a filter read in SQL?

What cannot be said narrows nothing: then more rows are found, and none is missed. Below a negation that would turn
around, so there a part is left out as soon as anything in it cannot be said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from levada.sharding.asked import AllOf, AnyOf, Condition, Filter, NoneOf

__all__ = ["Said", "Sayer", "where"]

_MOST_LEVELS = 100

Value = TypeVar("Value")


class Said(NamedTuple, Generic[Value]):
    """`words` with %s for each of the `values`."""

    words: str
    values: tuple[Value, ...] = ()


Sayer: TypeAlias = Callable[[Condition], Said[Value] | None]


def where(asked: Filter | None, say: Sayer[Value]) -> Said[Value]:
    """What follows WHERE; `say` words a condition, None: it cannot."""
    said = None if asked is None else _said(asked, say, 0, exactly=False)
    return said or Said("true")


def _said(node: Filter, say: Sayer[Value], level: int, *, exactly: bool) -> Said[Value] | None:
    if level > _MOST_LEVELS:
        return None
    if isinstance(node, Condition):
        return say(node)
    below = exactly or isinstance(node, NoneOf)
    parts = [_said(each, say, level + 1, exactly=below) for each in node.of]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) and (exactly or isinstance(node, AnyOf)):
        return None
    joined = _joined(known, " AND " if isinstance(node, AllOf) else " OR ")
    if joined is None or not isinstance(node, NoneOf):
        return joined
    return Said(f"NOT {joined.words}", joined.values)


def _joined(parts: Sequence[Said[Value]], word: str) -> Said[Value] | None:
    if not parts:
        return None
    return Said(
        f"({word.join(part.words for part in parts)})", tuple(each for part in parts for each in part.values)
    )
