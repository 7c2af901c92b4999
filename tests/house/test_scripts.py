"""Scripts outside the package (benchmarks, examples, docs) import only what is there."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

from tests.house.tree import HOUSE

SCRIPTS = sorted(path for folder in ("benchmarks", "docs", "examples") for path in (HOUSE / folder).rglob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(HOUSE)))
def test_what_a_script_imports_of_ours_is_there(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("levada", "tests"):
            module = import_module(node.module or "")
            for name in (alias.name for alias in node.names):
                assert hasattr(module, name) or import_module(f"{node.module}.{name}")
