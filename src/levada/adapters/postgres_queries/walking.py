"""Which SELECTs stand inside an expression?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pglast import ast

__all__ = ["nested_selects"]

_MOST_NODES = 100_000


def nested_selects(place: Any) -> Iterator[Any]:
    """The outermost ones, found without recursion; what is inside them is theirs to find."""
    waiting, met = [place], 0
    while waiting and met < _MOST_NODES:
        node = waiting.pop()
        met += 1
        if isinstance(node, ast.SubLink):
            yield node.subselect
        elif isinstance(node, (tuple, list)):
            waiting.extend(node)
        elif isinstance(node, ast.Node):
            waiting.extend(getattr(node, name) for name in getattr(node, "__slots__", ()))
