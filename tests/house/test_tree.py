"""The shape of the source tree: narrow folders, deep modules, no cycles, docstrings that state."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.house.imports import cycles, importers, imports
from tests.house.tree import SOURCE, docstrings_of, module_name, modules, tree_of

WIDEST = 25  # modules of a folder
LONGEST = 600  # lines of a module
SHORTEST = 40  # lines of a module with one importer

SMALL_FOR_A_REASON: dict[str, str] = {
    "levada.parser.inline": "the reference parser, which tests of plug-ins and of the crawl import without a pool",
}
"""Short modules that one other imports, and why each stands alone."""

SHARED_PREFIXES: dict[str, str] = {}
"""Prefixes (`folder/prefix`) that three files of a folder may share, and why they are not a folder."""


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def own_modules() -> list[Path]:
    return [path for path in modules() if path.name not in ("__init__.py", "__main__.py")]


def by_folder() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in own_modules():
        found[str(path.parent.relative_to(SOURCE))].append(path.stem)
    return found


def test_no_folder_is_wide() -> None:
    assert {folder: len(names) for folder, names in by_folder().items() if len(names) > WIDEST} == {}


def test_three_files_with_one_prefix_are_a_folder() -> None:
    shared: dict[str, list[str]] = defaultdict(list)
    for folder, names in by_folder().items():
        for name in names:
            shared[f"{folder}/{name.lstrip('_').split('_')[0]}"].append(name)
    found = {prefix: names for prefix, names in shared.items() if len(names) >= 3}
    assert {prefix: names for prefix, names in found.items() if prefix not in SHARED_PREFIXES} == {}
    assert [prefix for prefix in SHARED_PREFIXES if prefix not in found] == [], "no longer an exception"


def test_no_modules_import_each_other() -> None:
    assert cycles(imports()) == []


def test_a_cycle_would_be_noticed() -> None:
    assert cycles({"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": [], "e": ["a"]}) == [["a", "b", "c"]]


def test_no_module_is_long() -> None:
    assert {module_name(path): lines(path) for path in modules() if lines(path) > LONGEST} == {}


def test_no_module_is_a_fragment_of_its_only_importer() -> None:
    users = importers()
    found = {
        module_name(path): next(iter(users[module_name(path)]))
        for path in own_modules()
        if lines(path) < SHORTEST and len(users[module_name(path)]) == 1
    }
    assert {name: user for name, user in found.items() if name not in SMALL_FOR_A_REASON} == {}
    assert [name for name in SMALL_FOR_A_REASON if name not in found] == [], "no longer an exception"


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_the_first_line_of_a_module_states_its_subject(path: Path) -> None:
    said = ast.get_docstring(tree_of(path)) or ""
    first = said.partition("\n\n")[0]
    assert first, "a module states its subject"


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_docstrings_state_and_do_not_ask(path: Path) -> None:
    firsts = [said.partition("\n\n")[0] for said in docstrings_of(path)]
    assert [first for first in firsts if re.search(r"\w\?(?:\s|$)", first)] == []
