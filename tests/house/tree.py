"""The project's own files, and their contents."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["HOUSE", "SOURCE", "TEXTS", "docstrings_of", "fenced", "module_name", "modules", "tree_of"]

HOUSE = Path(__file__).parents[2]
SOURCE = HOUSE / "src" / "levada"
TEXTS = sorted([*HOUSE.glob("*.md"), *(HOUSE / "docs").glob("*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def docstrings_of(path: Path) -> list[str]:
    """The docstrings of a module and of everything in it, the module's first."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = (node for node in ast.walk(tree_of(path)) if isinstance(node, documented))
    return [said for node in nodes if (said := ast.get_docstring(node))]


def fenced(path: Path, language: str | None = None) -> Iterator[str]:
    """The blocks of code in a text, those of one language if it is named."""
    for found, block in _FENCE.findall(path.read_text(encoding="utf-8")):
        if language is None or found == language:
            yield block
