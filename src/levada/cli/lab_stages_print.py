"""How is a run of the stages laboratory shown to a person?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from levada.cli.lab_tables import figures_table, print_sections, wide_printer

if TYPE_CHECKING:
    from levada.cli.lab_stages_run import Result
    from levada.lab.stages.comparison import Entry

__all__ = ["show"]

_COLUMNS = ("controller and setting", "paid", "above floor, %", "late, s", "dropped, %", "decisions", "limits")


def show(result: Result) -> None:
    out = wide_printer()
    print_sections(out, result.sections)
    for load in dict.fromkeys(entry.load for entry in result.entries):
        own = [entry for entry in result.entries if entry.load == load]
        out.print(Text(f"\n{load}: the work alone keeps {own[0].busy_floor:.1f} workers busy", style="bold"))
        out.print(_entries(own))


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
            "kept" if entry.keeps_limits else "broken",
            style=None if entry.keeps_limits else "dim",
        )
    return table
