"""Every example of the public API runs: docstrings, docs/api.md and examples/api."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import levada
from tests.api.conftest import Web
from tests.house.tree import HOUSE, SOURCE, fenced

PAGE = HOUSE / "docs" / "api.md"
SCRIPTS = sorted((HOUSE / "examples" / "api").glob("*.py"))


def documented() -> Iterator[tuple[str, Any]]:
    """Every public name, and every public method of the class."""
    for name in levada.__all__:
        if not name.startswith("_"):
            yield name, getattr(levada, name)
    for name, each in inspect.getmembers(levada.Collection):
        if not name.startswith("_"):
            yield f"Collection.{name}", each


NAMES = dict(documented())


def said_of(name: str) -> str:
    return inspect.getdoc(NAMES[name]) or ""


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example_that_runs(name: str, web: Web, here: Path) -> None:
    with levada.open("news") as news:
        names = {
            "asyncio": asyncio,
            "levada": levada,
            "news": news,
            "other": web.start[3],
            "settings": levada.Settings.load("levada.toml"),
            "start": web.start[0],
        }
        example = doctest.DocTestParser().get_doctest(said_of(name), names, name, None, None)
        assert example.examples, "a public name has an example"
        told: list[str] = []
        doctest.DocTestRunner(verbose=False).run(example, out=told.append)
    assert "".join(told) == ""


@pytest.mark.parametrize("name", NAMES)
def test_the_page_names_every_public_name(name: str) -> None:
    assert re.search(rf"`(?:levada\.|news\.)?{name.rpartition('.')[2]}\b", PAGE.read_text(encoding="utf-8"))


def test_the_examples_of_the_page_run_one_after_the_other(web: Web, here: Path) -> None:
    names: dict[str, Any] = {}
    blocks = list(fenced(PAGE, "python"))
    assert blocks
    for number, block in enumerate(blocks):
        code = block.replace("https://example.org/", web.start[0]).replace("https://example.org", web.start[0])
        exec(compile(code, f"{PAGE.name}, block {number + 1}", "exec"), names)
    if "news" in names:
        names["news"].close()


def test_the_first_example_of_the_page_is_ten_lines() -> None:
    first = next(fenced(PAGE, "python"))
    assert len([line for line in first.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_runs(script: Path, web: Web, here: Path) -> None:
    done = subprocess.run(
        [sys.executable, script, web.start[0]],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
