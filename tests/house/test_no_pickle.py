"""No module can turn data into code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.tree import module_name, modules, tree_of

MODULES = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "pickletools", "shelve", "yaml"}
CALLS = {"__import__", "compile", "eval", "exec", "input"}
METHODS = {("os", "popen"), ("os", "system"), ("subprocess", "getoutput"), ("yaml", "load")}


def means(tree: ast.Module) -> Iterator[str]:
    """Whatever in this module turns data into code, or into a command of a shell."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            yield str(node.module)
        elif isinstance(node, ast.Call):
            yield from _call(node)


def _call(node: ast.Call) -> Iterator[str]:
    asked = node.func
    if isinstance(asked, ast.Name) and asked.id in CALLS:
        yield asked.id
    named = isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name)
    if named and tuple(ast.unparse(asked).split(".")) in METHODS:
        yield ast.unparse(asked)
    for given in node.keywords:
        if given.arg == "shell" and not (isinstance(given.value, ast.Constant) and given.value.value is False):
            yield "shell"


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_a_module_never_turns_data_into_code(path: Path) -> None:
    assert list(means(tree_of(path))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from marshal import loads",
        "eval('1')",
        "exec(text)",
        "yaml.load(text)",
        "run(command, shell=True)",
    ],
)
def test_it_would_be_noticed(code: str) -> None:
    assert list(means(ast.parse(code)))
