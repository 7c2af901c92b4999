"""What do the commands ask that choose a key, or try one out?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from levada.errors import UsageError

__all__ = [
    "CollectionOption",
    "IdOption",
    "ImmutableOption",
    "LogArgument",
    "MutableOption",
    "SampleArgument",
    "check_changes",
]

LogArgument = Annotated[
    Path, typer.Argument(metavar="LOG", help="Queries, one JSON line each (levada shard capture).")
]
SampleArgument = Annotated[
    Path, typer.Argument(metavar="SAMPLE", help="Documents, oldest first: .jsonl, .csv, .parquet.")
]
CollectionOption = Annotated[
    str | None, typer.Option("--collection", metavar="NAME", help="Of which; default: the most asked.")
]
IdOption = Annotated[
    str | None, typer.Option("--id", metavar="FIELD", help="The unique field; default: _id or id.")
]
MutableOption = Annotated[
    list[str] | None, typer.Option("--mutable", metavar="FIELD", help="Changes, whatever the log says.")
]
ImmutableOption = Annotated[
    list[str] | None, typer.Option("--immutable", metavar="FIELD", help="Never changes, whatever the log says.")
]


def check_changes(mutable: Sequence[str] | None, immutable: Sequence[str] | None) -> None:
    for name in mutable or ():
        if name in (immutable or ()):
            raise UsageError(f"--mutable and --immutable both name {name[:50]!r}: it changes, or it does not")
