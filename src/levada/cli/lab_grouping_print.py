"""How is a run of the grouping laboratory shown to a person?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from levada.cli.lab_tables import figures_table, print_sections, wide_printer

if TYPE_CHECKING:
    from levada.cli.lab_grouping_run import Result
    from levada.lab.grouping.comparison import Cell, Verdict
    from levada.lab.grouping.growth import Growth

__all__ = ["show"]

_COLUMNS = ("method", "deviation, %", "cost", "max/mean", "worst", "latency, s")


def show(result: Result) -> None:
    out = wide_printer()
    print_sections(out, result.sections, result.misprints)
    for growth in result.growths:
        out.print(_told(growth))
    for stream, workers in dict.fromkeys((cell.stream, cell.workers) for cell in result.cells):
        name = f"{stream} %" if stream.isdecimal() else stream
        out.print(Text(f"\n{name}, {workers} workers: mean ± deviation over seeds", style="bold"))
        out.print(_cells_table([each for each in result.cells if (each.stream, each.workers) == (stream, workers)]))
    if result.verdict:
        out.print(_judged(result.verdict))


def _cells_table(cells: Sequence[Cell]) -> Table:
    table = figures_table(_COLUMNS)
    for cell in cells:
        table.add_row(
            cell.method,
            f"{cell.deviation_percent:.4f} ± {cell.deviation_spread:.4f}",
            f"{cell.distribution_cost:.3f} ± {cell.cost_spread:.3f}",
            f"{cell.max_over_mean:.3f}",
            f"{cell.worst_over_mean:.3f}",
            f"{cell.latency_ms / 1000:,.1f}",
            style="bold" if cell.method == "levelled" else None,
        )
    return table


def _told(growth: Growth) -> str:
    from levada.lab.grouping.growth import seconds_to_settle

    up, down = seconds_to_settle(growth, 7, 3)
    widest = max(growth.workers)
    return (
        f"\n{growth.method}: the hot key had 7 workers after {up} s, {widest} at most, and 3 or fewer for good "
        f"{down} s after it turned cold"
    )


def _judged(verdict: Verdict) -> str:
    lines = [
        f"\nlevelled in {verdict.cells} cells: lower on both figures than dynamic in {verdict.lower_on_both}, "
        f"worse on both than a rival in {len(verdict.dominated)}",
        *(f"  worse on both: {place}" for place in verdict.dominated),
        *(f"  above 1.05 of the mean or dearer than dynamic: {place}" for place in verdict.uneven),
    ]
    return "\n".join(lines)
