"""What somebody types who wants to go on after the demo."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from levada.cli.demo.output import called_as


def program(folder: Path, name: str = "levada") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / name
    made.touch(0o755)
    return made


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def test_its_name_is_enough_where_the_shell_finds_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(program(here / "bin"))])
    assert called_as() == "levada"


@pytest.mark.parametrize("other_on_path", [False, True])
def test_it_is_called_as_it_was_where_the_shell_does_not(
    here: Path, monkeypatch: pytest.MonkeyPatch, other_on_path: bool
) -> None:
    if other_on_path:
        program(here / "bin")
    whole = program(here / ".venv" / "bin")
    for called in (".venv/bin/levada", str(whole)):
        monkeypatch.setattr(sys, "argv", [called])
        assert called_as() == ".venv/bin/levada"


def test_a_program_that_is_elsewhere_is_named_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = program(tmp_path / "a place")
    tmp_path.joinpath("work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(sys, "argv", [str(elsewhere)])
    assert called_as() == f"'{elsewhere}'"


def test_a_module_is_run_by_its_python(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(here / "levada" / "__main__.py")])
    monkeypatch.setattr(sys, "executable", str(here / ".venv" / "bin" / "python"))
    assert called_as() == ".venv/bin/python -m levada"
