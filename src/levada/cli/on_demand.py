"""How does a command start without loading the others? Its module is imported when it is asked for by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from importlib import import_module
from typing import Any, Literal

import typer
from typer.core import TyperCommand

from levada.cli.contents import CONTENTS
from levada.cli.family import Family

__all__ = ["MARKUP", "OnDemand", "OnDemandGroup"]

MARKUP: Literal["markdown"] = "markdown"


class OnDemand(Mapping[str, Any]):
    """Every command by its name, built when it is taken out; the names alone cost nothing."""

    def __init__(self) -> None:
        self._names = [name for panel in CONTENTS.values() for name in panel]
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._built:
            self._built[name] = _built(name)
        return self._built[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class OnDemandGroup(Family):
    """The commands of the contents, in their order and panels."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = OnDemand()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The page needs one line of each command, and the contents have it."""
        page = copy(self)
        page.commands = {
            name: TyperCommand(name, help=line, rich_help_panel=panel)
            for panel, lines in CONTENTS.items()
            for name, line in lines.items()
        }
        Family.format_help(page, ctx, formatter)


def _built(name: str) -> Any:
    alone = typer.Typer(rich_markup_mode=MARKUP)
    import_module(f"levada.cli.{name}").register(alone)
    return typer.main.get_group(alone).commands[name]
