"""The options that several commands share, and how a command ends."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

__all__ = ["ConfigOption", "DataOption", "JsonOption", "print_json"]

DataOption = Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder that holds the collection.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings; default: levada.toml if it is here.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object for programs instead of text.")]


def print_json(value: Any) -> None:
    """One object on one line; whatever msgspec can write."""
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()
