"""How does text get on the screen? What comes from outsiders goes through `levada.telling.words` first."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TextIO

from levada.telling.words import harmless, line, paragraphs, plural, shortened, size

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command_for", "harmless", "line", "paragraphs", "plural", "printer", "shortened", "size"]

_COLUMNS = 80  # where nobody knows how wide the screen is


def command_for(name: str, url: str, folder: Path) -> str:
    """What can be typed as it stands."""
    return f"levada {name} {quote(url)} --data {quote(str(folder))}"


def printer(file: TextIO | None = None) -> Console:
    """Standard output: colour on a terminal (unless NO_COLOR), plain when piped; lines are never broken, so that an
    address can be copied."""
    from rich.console import Console

    out = sys.stdout if file is None else file
    reconfigure = getattr(out, "reconfigure", None)
    if reconfigure is not None:  # a letter that the terminal cannot show must not end the command
        reconfigure(errors="replace")
    console = Console(file=out, highlight=False, markup=False, emoji=False, soft_wrap=True)
    if console.width < 1:  # some shells say COLUMNS=0, and would see nothing at all
        console.width = _COLUMNS
    return console
