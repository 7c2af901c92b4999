"""How is a run of the stages laboratory shown to a person?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from levada.cli.printing import printer

if TYPE_CHECKING:
    from levada.cli.lab_stages_run import Result
    from levada.lab.claims import Claim, Section
    from levada.lab.stages.comparison import Entry

__all__ = ["show"]

_WIDTH = 116  # what the tables need; a pipe has no width of its own
_COLUMNS = ("controller and setting", "paid", "above floor, %", "late, s", "dropped, %", "decisions", "limits")


def show(result: Result) -> None:
    out = printer()
    out.width = max(out.width, _WIDTH)
    for section in result.sections:
        out.print(Text(f"\n{section.title}: printed | ours", style="bold"))
        table = _table(("", *section.columns))
        for name, claims in section.rows:
            table.add_row(name, *(_claim(claim) for claim in claims))
        out.print(table)
    if result.sections:
        out.print(_tally(result.sections))
    for load in dict.fromkeys(entry.load for entry in result.entries):
        own = [entry for entry in result.entries if entry.load == load]
        out.print(Text(f"\n{load}: the work alone keeps {own[0].busy_floor:.1f} workers busy", style="bold"))
        out.print(_entries(own))


def _entries(entries: Sequence[Entry]) -> Table:
    table = _table(_COLUMNS)
    for entry in entries:
        table.add_row(
            entry.setting,
            f"{entry.paid_workers:.1f}",
            f"{entry.over_percent:.2f}",
            f"{entry.late_s:.3f}",
            f"{entry.drop_percent:.3f}",
            f"{entry.decisions:,.0f}",
            "kept" if entry.keeps_limits else "broken",
            style=None if entry.keeps_limits else "dim",
        )
    return table


def _table(columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def _claim(claim: Claim) -> Text:
    missed = claim.verdict == "misses"
    mark = " ✗" if missed else ""
    return Text(f"{claim.printed:,.5g} | {claim.measured:,.5g}{mark:2}", style="red" if missed else "green")


def _tally(sections: Sequence[Section]) -> str:
    counts = Counter(claim.verdict for section in sections for claim in section.claims)
    return (
        f"\nOf {counts.total()} printed figures {counts['holds']} come out again within their bands, "
        f"{counts['misses']} miss (✗)."
    )
