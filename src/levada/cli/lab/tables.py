"""Tables of a source's figures beside ours, and checks before long work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from levada.cli.options import split_names
from levada.cli.terminal import printer
from levada.core.errors import LevadaError, MissingExtra, UsageError

if TYPE_CHECKING:
    from levada.lab.reference import Claim, Section

Record = TypeVar("Record")
PictureOption = Annotated[Path | None, typer.Option("--picture", metavar="FILE", help="Draw it too: .svg or .png.")]


def require(*packages: str) -> None:
    """Raise `MissingExtra` for the first package that is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(package, "lab")


def require_lab(picture: Path | None = None) -> None:
    """Check the packages of the laboratory, and those for drawing if a picture is wanted."""
    require("numpy", "numba", *(["matplotlib"] if picture else []))
    check_picture(picture)


def check_picture(picture: Path | None, endings: Sequence[str] = (".svg", ".png")) -> None:
    if picture is not None and picture.suffix.lower() not in endings:
        raise UsageError(f"--picture: the name must end in {' or '.join(endings)}, not {picture.name!r}")
    check_folder("--picture", picture)


def check_folder(option: str, path: Path | None) -> None:
    """`LevadaError` if the folder of a file that is to be written is missing."""
    if path is not None and not path.absolute().parent.is_dir():
        raise LevadaError(f"{option}: there is no folder {path.parent}")


def chosen_parts(only: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """The parts named in a list with commas; all of them if none is named."""
    chosen = split_names(only or ",".join(known))
    for part in chosen:
        if part not in known:
            raise UsageError(f"--only: {part!r} is none of {', '.join(known)}")
    return chosen


_WIDTH = 116  # what the tables need; a pipe has no width of its own
_VERDICTS = {"holds": ("", "green"), "misses": (" ✗", "red"), "misprint": (" *", "yellow")}


def wide_printer() -> Console:
    out = printer()
    out.width = max(out.width, _WIDTH)
    return out


def figures_table(columns: Sequence[str]) -> Table:
    """A table with names to the left and figures to the right."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def records_table(
    columns: Mapping[str, Callable[[Record], str]],
    records: Iterable[Record],
    style: Callable[[Record], str | None] = lambda record: None,
) -> Table:
    """A table with a row for each record; each column says what it shows of one."""
    table = figures_table(tuple(columns))
    for each in records:
        table.add_row(*(shown(each) for shown in columns.values()), style=style(each))
    return table


def print_sections(out: Console, sections: Sequence[Section], misprints: Sequence[str] = ()) -> None:
    """Print every figure of the source with ours, how many were reproduced, and which are misprints."""
    for section in sections:
        print_section(out, section, "printed | ours", _cell)
    if sections:
        out.print(_tally(sections))
    for misprint in misprints:
        out.print(f"* misprint, {misprint}")


def print_section(out: Console, section: Section, beside: str, cell: Callable[[Claim], Text]) -> None:
    out.print(Text(f"\n{section.title}: {beside}", style="bold"))
    table = figures_table(("", *section.columns))
    for name, claims in section.rows:
        table.add_row(name, *map(cell, claims))
    out.print(table)


def _cell(claim: Claim) -> Text:
    mark, style = _VERDICTS[claim.verdict]
    return Text(f"{claim.printed:,.6g} | {claim.measured:,.5g}{mark:2}", style=style)


def _tally(sections: Sequence[Section]) -> str:
    counts = Counter(claim.verdict for section in sections for claim in section.claims)
    corrected = f"{counts['misprint']} are misprints (*) that do once corrected, and " if counts["misprint"] else ""
    return (
        f"\nOf {counts.total()} printed figures {counts['holds']} come out again within their bands, "
        f"{corrected}{counts['misses']} miss (✗)."
    )
