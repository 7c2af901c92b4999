"""What the commands of `levada simulate` are asked alike."""

from __future__ import annotations

from typing import Annotated

import typer

from levada.errors import UsageError

__all__ = [
    "CatalogsOption",
    "ControllerOption",
    "LoadOption",
    "OrchestratorsOption",
    "ScannersOption",
    "SecondsOption",
    "SetOption",
    "parse_numbers",
    "parse_options",
]

ScannersOption = Annotated[float, typer.Option("--scanners", metavar="N", help="Each makes ten jobs per second.")]
OrchestratorsOption = Annotated[int, typer.Option("--orchestrators", metavar="N", help="At most; 0.25 s per job.")]
CatalogsOption = Annotated[int, typer.Option("--catalogs", metavar="N", help="At most; 5 s per job.")]
SecondsOption = Annotated[float, typer.Option("--seconds", metavar="S", help="How long, in simulated seconds.")]
ControllerOption = Annotated[
    str, typer.Option("--controller", metavar="NAME", help="Who says how many; a wrong name lists all.")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Tell the controller; --set may be left out.")
]
LoadOption = Annotated[
    str | None,
    typer.Option("--load", metavar="SHAPE", help="steps:1,5,3 bursts:2,10,10,120 daily:1,5,2000 recorded:FILE"),
]


def parse_numbers(text: str, where: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{where}: {text!r} is not a list of numbers") from None


def parse_options(settings: list[str] | None) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """`key=value`, or `key=a/b` with a value for each stage."""
    found = {}
    for setting in settings or ():
        key, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"{setting!r} is not of the form key=value")
        found[key] = parse_numbers(value.replace("/", ","), key)
    return tuple(found.items())
