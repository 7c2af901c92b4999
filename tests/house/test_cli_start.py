"""`levada --help` answers without loading what only the work needs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import typer

from levada.cli.app import COMMANDS, app

TABLE = {name: entry for panel in COMMANDS.values() for name, entry in panel.items()}
LINES = {name: line for name, (_, line) in TABLE.items()}
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


def loaded_by(arguments: list[str]) -> set[str]:
    code = _HELP.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    status, loaded = json.loads(done.stderr.splitlines()[-1])
    assert status == 0
    return set(loaded)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["crawl", "--help"], ["search", "--help"]], ids=" ".join
)
def test_help_loads_no_engine(arguments: list[str]) -> None:
    assert HEAVY & {name.split(".")[0] for name in loaded_by(arguments)} == set()


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["crawl", "--help"], {"crawl"}),
        (["shard", "capture", "--help"], {"shard"}),
    ],
)
def test_no_command_is_loaded_that_was_not_asked_for(arguments: list[str], needed: set[str]) -> None:
    loaded = loaded_by(arguments)
    assert {name for name, (module, _) in TABLE.items() if f"levada.cli.{module}" in loaded} == needed


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["crawl", "-h"], ["shard", "advise", "--help"]])
def test_help_checks_no_values_and_loads_nothing_to_check_them(arguments: list[str]) -> None:
    assert "pydantic" not in loaded_by(arguments)


def test_help_names_every_command() -> None:
    done = subprocess.run([sys.executable, "-m", "levada", "--help"], capture_output=True, text=True, check=True)
    first = [line.strip("\u2502 ").split(" ")[0] for line in done.stdout.splitlines()]
    assert [word for word in first if word in LINES] == list(LINES)


@pytest.mark.parametrize("name", LINES)
def test_the_contents_say_of_a_command_what_it_says_itself(name: str) -> None:
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    assert command.name == name
    first_paragraph = (command.short_help or command.help).partition("\n\n")[0]
    assert LINES[name] == " ".join(first_paragraph.split("\n"))


def test_told_to_end_a_command_takes_its_children_along() -> None:
    code = """
import multiprocessing, signal, time
from levada.cli import app as root
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


def test_a_command_that_is_nearly_there_is_named() -> None:
    done = subprocess.run([sys.executable, "-m", "levada", "crwal"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Did you mean 'crawl'?" in done.stderr


def test_a_wrong_value_before_the_command_is_wrong_usage() -> None:
    done = subprocess.run([sys.executable, "-m", "levada", "--log", "xml", "doctor"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--log" in done.stderr
