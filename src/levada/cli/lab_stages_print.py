"""How is a run of the stages laboratory shown to a person?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from levada.cli.lab_tables import figures_table, print_sections, wide_printer

if TYPE_CHECKING:
    from levada.cli.lab_stages_run import Result
    from levada.lab.claims import Claim
    from levada.lab.stages.comparison import Entry

__all__ = ["show"]

_COLUMNS = (
    "controller and setting",
    "paid",
    "above floor, %",
    "late, s",
    "dropped, %",
    "decisions",
    "tried",
    "limits",
)


def show(result: Result) -> None:
    out = wide_printer()
    print_sections(out, result.sections)
    for section in result.limits:
        out.print(Text(f"\n{section.title}: ours | limit", style="bold"))
        table = figures_table(("", *section.columns))
        for name, claims in section.rows:
            table.add_row(name, *(_limited(claim) for claim in claims))
        out.print(table)
    for load in dict.fromkeys(entry.load for entry in result.entries):
        own = [entry for entry in result.entries if entry.load == load]
        out.print(Text(f"\n{load}: the work alone keeps {own[0].busy_floor:.1f} workers busy", style="bold"))
        out.print(_entries(own))


def _limited(claim: Claim) -> Text:
    kept = claim.verdict == "holds"
    return Text(
        f"{claim.measured:,.4g} | {claim.printed:,.4g}{'' if kept else ' ✗':2}", style="green" if kept else "red"
    )


def _entries(entries: Sequence[Entry]) -> Table:
    table = figures_table(_COLUMNS)
    for entry in entries:
        table.add_row(
            entry.setting,
            f"{entry.paid_workers:.1f}",
            f"{entry.over_percent:.2f}",
            f"{entry.late_s:.3f}",
            f"{entry.drop_percent:.3f}",
            f"{entry.decisions:,.0f}",
            str(entry.settings_tried),
            "kept" if entry.keeps_limits else "decisions" if entry.keeps_others else "broken",
            style=None if entry.keeps_limits else "dim",
        )
    return table
