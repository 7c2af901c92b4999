"""The promises of docs/guarantees.md: each names a test that is there."""

from __future__ import annotations

import ast
import re

from tests.house.tree import HOUSE

ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)
SHOWN = re.compile(r"^`(tests/[a-z_0-9/]+\.py)::(test_[a-z_0-9]+)`$")


def rows() -> list[list[str]]:
    text = (HOUSE / "docs/guarantees.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in row.split("|")] for row in ROW.findall(text)]
    return [each for each in cells if each[0] not in ("part", "---")]


def test_every_promise_names_a_test_that_is_there() -> None:
    missing = []
    for row in rows():
        found = SHOWN.match(row[-1])
        if found is None:
            missing.append(row[-1])
            continue
        path, name = HOUSE / found[1], found[2]
        tree = ast.parse(path.read_text(encoding="utf-8")) if path.exists() else ast.parse("")
        if name not in {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}:
            missing.append(row[-1])
    assert missing == []


def test_every_promise_is_whole() -> None:
    assert len(rows()) > 20
    for row in rows():
        assert len(row) == 6, row
        assert all(row), row
        assert row[2] == "0", row
        assert row[3].startswith("0"), row
