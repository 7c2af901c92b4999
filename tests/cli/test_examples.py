"""Every command, and every group of commands, shows an example."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from levada.cli.app import app


def below(name: str, command: Any) -> dict[str, Any]:
    found = {name: command}
    for each, member in getattr(command, "commands", {}).items():
        found |= below(f"{name} {each}", member)
    return found


COMMANDS = below("levada", typer.main.get_command(app))
SHOWN = sorted(set(COMMANDS) - {"levada"})  # whose page is a list of them


@pytest.mark.parametrize("name", SHOWN)
def test_its_help_has_examples_of_its_own(name: str) -> None:
    _, found, examples = COMMANDS[name].help.partition("Example")
    assert found
    assert name in examples
