"""How are a source's figures shown beside ours?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from levada.cli.printing import printer

if TYPE_CHECKING:
    from levada.lab.claims import Claim, Section

__all__ = ["figures_table", "print_sections", "wide_printer"]

_WIDTH = 116  # what the tables need; a pipe has no width of its own
_VERDICTS = {"holds": ("", "green"), "misses": (" ✗", "red"), "misprint": (" *", "yellow")}


def wide_printer() -> Console:
    out = printer()
    out.width = max(out.width, _WIDTH)
    return out


def figures_table(columns: Sequence[str]) -> Table:
    """Names to the left, figures to the right."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def print_sections(out: Console, sections: Sequence[Section], misprints: Sequence[str] = ()) -> None:
    """Every printed figure with ours, how many came out again, and which cannot have been meant."""
    for section in sections:
        out.print(Text(f"\n{section.title}: printed | ours", style="bold"))
        table = figures_table(("", *section.columns))
        for name, claims in section.rows:
            table.add_row(name, *(_cell(claim) for claim in claims))
        out.print(table)
    if sections:
        out.print(_tally(sections))
    for misprint in misprints:
        out.print(f"* misprint, {misprint}")


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
