"""Does `levada --help` answer without loading what only the work needs?"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import typer

HEAVY = {"pyarrow", "pycurl", "selectolax", "sqlite3", "tantivy", "trafilatura", "uvloop", "warcio", "zstandard"}

_HELP = """
import json, sys
from levada.cli import main
sys.argv = ["levada", *{arguments!r}]
try:
    main()
except SystemExit as end:
    status = end.code or 0
print(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["crawl", "--help"], ["search", "--help"]], ids=" ".join
)
def test_help_loads_no_engine(arguments: list[str]) -> None:
    code = _HELP.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    status, loaded = json.loads(done.stderr.splitlines()[-1])
    assert status == 0
    assert HEAVY & {name.split(".")[0] for name in loaded} == set()


def test_help_names_every_command() -> None:
    from levada.cli.root import app

    done = subprocess.run([sys.executable, "-m", "levada", "--help"], capture_output=True, text=True, check=True)
    assert all(command.callback.__name__ in done.stdout for command in app.registered_commands if command.callback)


def test_help_has_every_command_in_a_panel() -> None:
    from levada.cli.root import _PANELS, app

    placed = [name for names in _PANELS.values() for name in names]
    assert sorted(placed) == sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_told_to_end_a_command_takes_its_children_along() -> None:
    code = """
import multiprocessing, signal, time
from levada.cli import root
child = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
child.start()
signal.signal(signal.SIGTERM, root._end)
try:
    signal.raise_signal(signal.SIGTERM)
finally:
    child.join()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 143, done.stderr


def test_a_command_that_is_not_there_is_wrong_usage() -> None:
    done = subprocess.run([sys.executable, "-m", "levada", "fly"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "fly" in done.stderr
