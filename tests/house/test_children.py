"""No child process of Levada imports a module from the folder in which a command was started."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from levada.core.processes import module_command

SOURCE = Path(__file__).parents[2] / "src/levada"
CHILDREN = (
    "levada.browser.child",
    "levada.cli.app",
    "levada.capture.mongodb.capture_child",
    "levada.demo.server",
    "levada.follow.counter",
    "levada.follow.index",
    "levada.follow.notify.child",
    "levada.parser.child",
    "levada.parser.converting",
)
FOUND_HERE = ("typer", "msgspec", "selectolax", "json", "asyncio", "lxml", "tantivy", "levada")


def runs_what_lies_here(command: list[str], module: str, folder: Path) -> bool:
    for name in FOUND_HERE:
        (folder / f"{name}.py").write_text("open('was-run', 'w').close()\n")
    subprocess.run([*command, "-c", f"import {module}"], cwd=folder, capture_output=True, timeout=60, check=False)
    return (folder / "was-run").exists()


@pytest.mark.parametrize("module", CHILDREN)
def test_a_module_of_the_current_folder_is_not_run(module: str, tmp_path: Path) -> None:
    python, flag, _, own = module_command(module)
    assert own == module
    assert not runs_what_lies_here([python, flag], module, tmp_path)


def test_it_would_be_run_without_the_flag(tmp_path: Path) -> None:
    assert runs_what_lies_here([sys.executable], "levada.cli.app", tmp_path)


def test_packages_of_the_user_are_found_by_children() -> None:
    """A Levada that was installed by `pip install --user` lies among them, and -I would leave them out."""
    command = [*module_command("site")[:-2], "-c", "import sys; print(sys.flags.no_user_site, sys.flags.safe_path)"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONNOUSERSITE": ""}
    )
    assert done.stdout.split() == ["0", "True"]


def test_every_child_is_started_by_the_one_command() -> None:
    own = re.compile(r"sys\.executable")
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if own.search(path.read_text())}
    # The pool of parsers takes a program of its own in tests; the demo only prints what a person would type.
    assert found == {"core/processes.py", "parser/pool.py", "cli/demo/output.py"}
    assert '[sys.executable, "-P", ' in (SOURCE / "parser/pool.py").read_text()
    assert sys.executable in module_command("levada")
