"""`levada lab grouping`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from levada.cli.lab.tables import (
    PictureOption,
    chosen_parts,
    print_sections,
    records_table,
    require_lab,
    wide_printer,
)
from levada.cli.options import JsonOption, check_range, print_result, split_names
from levada.cli.terminal import progress_bar
from levada.core.errors import UsageError

if TYPE_CHECKING:
    from levada.lab.grouping.cells import Growth
    from levada.lab.grouping.comparison import Cell, GroupingVerdict
    from levada.lab.reference import Section

_COLUMNS: Mapping[str, Callable[[Cell], str]] = {
    "method": lambda cell: cell.method,
    "deviation, %": lambda cell: f"{cell.deviation_percent:.4f} ± {cell.deviation_spread:.4f}",
    "cost": lambda cell: f"{cell.distribution_cost:.3f} ± {cell.cost_spread:.3f}",
    "max/mean": lambda cell: f"{cell.max_over_mean:.3f}",
    "worst": lambda cell: f"{cell.worst_over_mean:.3f}",
    "latency, s": lambda cell: f"{cell.latency_ms / 1000:,.1f}",
}


def show(result: GroupingLabResult) -> None:
    out = wide_printer()
    print_sections(out, result.sections, result.misprints)
    for growth in result.growths:
        out.print(_told(growth))
    for stream, workers in dict.fromkeys((cell.stream, cell.workers) for cell in result.cells):
        name = f"{stream} %" if stream.isdecimal() else stream
        out.print(Text(f"\n{name}, {workers} workers: mean ± deviation over seeds", style="bold"))
        cells = [each for each in result.cells if (each.stream, each.workers) == (stream, workers)]
        out.print(records_table(_COLUMNS, cells, lambda cell: "bold" if cell.method == "levelled" else None))
    if result.verdict:
        out.print(_judged(result.verdict))


def _told(growth: Growth) -> str:
    from levada.lab.grouping.cells import seconds_to_settle

    up, down = seconds_to_settle(growth, 7, 3)
    widest = max(growth.workers)
    return (
        f"\n{growth.method}: the hot key had 7 workers after {up} s, {widest} at most, and 3 or fewer for good "
        f"{down} s after it turned cold"
    )


def _judged(verdict: GroupingVerdict) -> str:
    lines = [
        f"\nlevelled in {verdict.cells} cells: lower on both figures than dynamic in {verdict.lower_on_both}, "
        f"worse on both than a rival in {len(verdict.dominated)}",
        *(f"  worse on both: {place}" for place in verdict.dominated),
        *(f"  above 1.05 of the mean or dearer than dynamic: {place}" for place in verdict.uneven),
    ]
    return "\n".join(lines)


_FOLLOWED = ("dynamic", "levelled")


@dataclass(slots=True)
class GroupingLabResult:
    sections: list[Section] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    verdict: GroupingVerdict | None = None

    @property
    def misprints(self) -> tuple[str, ...]:
        from levada.lab.grouping.thesis import MISPRINTS

        return MISPRINTS if self.sections else ()

    def facts(self) -> dict[str, Any]:
        return {
            "claims": [claim for section in self.sections for claim in section.claims],
            "misprints": self.misprints,
            "growth": {growth.method: growth.workers for growth in self.growths},
            "cells": self.cells,
            "verdict": self.verdict,
        }


def run(
    parts: Sequence[str],
    seeds: Sequence[int],
    records: int,
    thesis_records: int,
    streams: Sequence[str],
    *,
    quiet: bool,
) -> GroupingLabResult:
    from levada.lab.grouping.cells import follow_hot_key
    from levada.lab.grouping.comparison import SKEWS, WORKERS, compare, judge_ours
    from levada.lab.grouping.thesis import thesis_sections

    result = GroupingLabResult()
    if "thesis" in parts:
        with progress_bar(quiet) as progress:
            result.sections = thesis_sections(thesis_records, progress)
    if "growth" in parts:
        result.growths = [follow_hot_key(method, thesis_records, seed=1) for method in _FOLLOWED]
    if "comparison" in parts:
        with progress_bar(quiet) as progress:
            result.cells = compare(streams or SKEWS, WORKERS, seeds, records, progress=progress)
        result.verdict = judge_ours(result.cells)
    return result


_PARTS = ("thesis", "growth", "comparison")


def grouping(
    only: Annotated[str | None, typer.Option(metavar="A,B", help="Of thesis, growth and comparison.")] = None,
    seeds: Annotated[int, typer.Option("--runs", metavar="N", help="Seeds 1 to N in the comparison.")] = 3,
    records: Annotated[int, typer.Option(metavar="K", help="Records per cell of the comparison.")] = 1_000_000,
    thesis_records: Annotated[
        int, typer.Option(metavar="K", help="Records of the thesis's sets, 10 million there.")
    ] = 10_000_000,
    streams: Annotated[str | None, typer.Option(metavar="A,B", help="Compare on these real streams instead.")] = None,
    picture: PictureOption = None,
    json: JsonOption = False,
) -> None:
    """Reruns tables 8, 9 and 12 of the Dynamic Key Grouping thesis in virtual time, follows a key that is hot for
    half of a stream, and compares every method at every skew and number of workers.

    About five minutes on two cores.

    Examples:

    ```
    levada lab grouping
    levada lab grouping --only growth,comparison --picture grouping.svg
    levada lab grouping --only comparison --runs 10 --records 10000000 --json
    ```
    """
    require_lab(picture)
    parts = chosen_parts(only, _PARTS)
    check_range("--runs", seeds, 1, 1_000)
    if min(records, thesis_records) < 1_000 or max(records, thesis_records) > 200_000_000:
        raise UsageError("--records and --thesis-records must be between 1000 and 200000000")
    names = split_names(streams)
    _check_streams(names, parts)

    result = run(parts, range(1, seeds + 1), records, thesis_records, names, quiet=json)
    if picture:
        from levada.lab.grouping.comparison import draw

        draw(result.growths, result.cells, picture)
    print_result(json, result.facts(), show, result)


def _check_streams(names: Sequence[str], parts: Sequence[str]) -> None:
    """Read each stream once: a missing one is found before minutes of work."""
    if names and "comparison" not in parts:
        raise UsageError("--streams are for the comparison: name it in --only, or leave --streams out")
    from levada.lab.grouping.streams import REAL_STREAMS, real_stream

    for name in sorted(names, key=REAL_STREAMS.__contains__):  # a mistake first, before what is not installed
        real_stream(name)
