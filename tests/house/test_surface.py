"""The public surface is what it claims to be, and each part stands alone."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.house.tree import SOURCE, module_name, modules, tree_of

PARTS = ("freshness", "grouping", "stages", "sharding", "bulk")
SHARED = {"core"}
# What the shared words are made of (msgspec takes typing_extensions where it is installed); no part declares more.
MAY_IMPORT = {"msgspec", "typing_extensions"}

_IMPORTED = """
import sys
before = set(sys.modules)
import {module}
import json
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def exported(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(_is_name(target, "__all__") for target in node.targets):
            value: list[str] = ast.literal_eval(node.value)
            return value
    return None


def defined(tree: ast.Module) -> set[str]:
    """The names that a module binds at its top, those that it has lazily and shows to type checkers too."""
    found: set[str] = set()
    shown = [each for node in tree.body if isinstance(node, ast.If) for each in node.body]
    for node in [*tree.body, *shown]:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def in_order(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then functions, each by the alphabet."""
    return not name.isupper(), not name[0].isupper(), name


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    said = ast.get_docstring(tree_of(path))
    assert said
    assert said.splitlines()[0].strip()


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_only_packages_list_what_they_offer_sorted_and_there(path: Path) -> None:
    """A module offers what has no underscore before its name; a list of it would only be written twice."""
    tree = tree_of(path)
    offered = exported(tree)
    if path.name != "__init__.py":
        assert offered is None
        return
    public = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    if offered is None:
        assert {name for name in public if not name.startswith("_")} == set()
        return
    assert offered == sorted(set(offered), key=in_order)
    assert set(offered) <= defined(tree)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("__init__.py")), ids=module_name)
def test_what_a_package_offers_can_be_had(path: Path) -> None:
    package = import_module(module_name(path))
    assert [name for name in exported(tree_of(path)) or [] if not hasattr(package, name)] == []


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_alone(part: str) -> None:
    code = _IMPORTED.format(module=f"levada.{part}")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    of_ours = {name.split(".")[1] for name in loaded if name.startswith("levada.")}
    assert of_ours <= {part} | SHARED
    roots = {name.split(".")[0] for name in loaded} - {"levada"}
    assert roots - set(sys.stdlib_module_names) <= MAY_IMPORT
