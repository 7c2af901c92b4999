"""The options that a load and the questions about it share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.errors import NotFound

if TYPE_CHECKING:
    from levada.assemble.loading import LoadRequest

__all__ = ["MAPS", "BookOption", "MapsOption", "NameArgument", "SourceOption", "TargetOption", "asked_load"]

MAPS = Path("levada-maps")
BookOption = Annotated[
    str, typer.Option("--book", metavar="URL", help="Of the task book; default: beside the map. Or postgresql://.")
]
MapsOption = Annotated[
    Path, typer.Option("--maps", metavar="DIR", help="Where loads are noted, and maps in files kept.")
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of the map.")]
SourceOption = Annotated[str, typer.Option("--from", metavar="URL", help="Of the source, if not noted here.")]
TargetOption = Annotated[str, typer.Option("--to", metavar="URL", help="Of the map, if not noted here.")]


def asked_load(name: str, maps: Path, target: str = "", source: str = "", book: str = "") -> LoadRequest:
    """The load as it was noted here, with what is named now instead."""
    import msgspec

    from levada.assemble.loading import LoadRequest
    from levada.assemble.loading_notes import noted_load, noted_loads
    from levada.bulk.generations import checked_name
    from levada.bulk.near import near_names

    noted = noted_load(maps, checked_name(name))
    if noted is None and not target and not (maps / name).exists():
        known = noted_loads(maps)
        near = near_names(name, known)
        hint = f"{near}{'' if near.endswith('?') else '.'} Or " if known else ""
        raise NotFound(f"no load {name} is noted in {maps}: {hint}name where the map is with --to")
    base = noted or LoadRequest("", "", "", "", name, str(maps))
    named = {"target": target, "source": source, "book": book}
    return msgspec.structs.replace(base, **{field: word for field, word in named.items() if word})
