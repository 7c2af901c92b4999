"""`levada lab stages`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from levada.cli.lab.tables import (
    chosen_parts,
    print_section,
    print_sections,
    records_table,
    require_lab,
    wide_printer,
)
from levada.cli.options import JsonOption, check_range, print_result
from levada.cli.terminal import progress_bar

if TYPE_CHECKING:
    from levada.lab.reference import Claim, Section
    from levada.lab.stages.comparison import ControllerEntry

_COLUMNS: Mapping[str, Callable[[ControllerEntry], str]] = {
    "controller and setting": lambda entry: entry.setting,
    "paid": lambda entry: f"{entry.paid_workers:.1f}",
    "above floor, %": lambda entry: f"{entry.over_percent:.2f}",
    "late, s": lambda entry: f"{entry.late_s:.3f}",
    "dropped, %": lambda entry: f"{entry.drop_percent:.3f}",
    "decisions": lambda entry: f"{entry.decisions:,.0f}",
    "tried": lambda entry: str(entry.settings_tried),
    "limits": lambda entry: "kept" if entry.keeps_limits else "decisions" if entry.keeps_others else "broken",
}


def show(result: StagesLabResult) -> None:
    out = wide_printer()
    print_sections(out, result.sections)
    for section in result.limits:
        print_section(out, section, "ours | limit", _limited)
    for load in dict.fromkeys(entry.load for entry in result.entries):
        own = [entry for entry in result.entries if entry.load == load]
        out.print(Text(f"\n{load}: the work alone keeps {own[0].busy_floor:.1f} workers busy", style="bold"))
        out.print(records_table(_COLUMNS, own, lambda entry: None if entry.keeps_limits else "dim"))


def _limited(claim: Claim) -> Text:
    kept = claim.verdict == "holds"
    return Text(
        f"{claim.measured:,.4g} | {claim.printed:,.4g}{'' if kept else ' ✗':2}", style="green" if kept else "red"
    )


_FRESH = 301  # ours was tuned on lower seeds than these


@dataclass(slots=True)
class StagesLabResult:
    sections: list[Section] = field(default_factory=list)
    limits: list[Section] = field(default_factory=list)
    entries: list[ControllerEntry] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        return {
            "claims": [claim for section in self.sections for claim in section.claims],
            "limits": [
                {"table": section.title, "row": row, "claims": claims}
                for section in self.limits
                for row, claims in section.rows
            ],
            "comparison": self.entries,
        }


def run(parts: Sequence[str], runs: int, seconds: float, *, quiet: bool) -> StagesLabResult:
    from levada.lab.stages import comparison, report

    seeds, fresh = range(1, runs + 1), range(_FRESH, _FRESH + runs)
    result = StagesLabResult()
    if "checks" in parts:
        result.sections += _checks(seconds, seeds, quiet)
    for part, sections, make, drawn in (
        ("scores", result.sections, report.linear_section, seeds),
        ("scores", result.sections, report.drain_time_section, seeds),
        ("limits", result.limits, comparison.limits_section, fresh),
        ("limits", result.limits, comparison.startup_section, fresh),
    ):
        if part in parts:
            with progress_bar(quiet) as progress:
                sections.append(make(seconds, drawn, progress))
    if "comparison" in parts:
        with progress_bar(quiet) as progress:
            result.entries = comparison.compare(seeds=fresh, seconds=seconds, progress=progress)
    return result


def _checks(seconds: float, seeds: Sequence[int], quiet: bool) -> list[Section]:
    from levada.lab.stages import report

    with progress_bar(quiet) as progress:
        best = report.run_best(seconds, seeds, progress)
    return [
        report.theory_section(seconds, seeds),
        report.queue_section(seconds, seeds),
        report.static_section(seconds, seeds),
        report.sizes_section(seconds, min(3, len(seeds))),
        report.overload_section(seeds),
        report.side_by_side_section(best),
        *report.money_sections(best),
    ]


_PARTS = ("checks", "scores", "limits", "comparison")


def stages(
    only: Annotated[str | None, typer.Option(metavar="A,B", help="Of checks, scores, limits and comparison.")] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="Seeds per figure.")] = 5,
    seconds: Annotated[
        float, typer.Option(metavar="S", help="Simulated seconds per run, 10000 in the report.")
    ] = 10_000.0,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw cost against latency: .svg or .png.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Reruns the figures of the report on a three-stage system, printed beside ours: the M/M/1 check, the first
    queue, static sizes, the overload, both score tables, the cost in money; then says whether ours keeps its
    limits on six loads, and compares all controllers there: of each the cheapest setting that keeps the limits.

    Examples:

    ```
    levada lab stages
    levada lab stages --only checks --runs 2 --seconds 2000
    levada lab stages --only limits,comparison --runs 10 --seconds 3000
    levada lab stages --only comparison --picture stages.svg --json
    ```
    """
    require_lab(picture)
    parts = chosen_parts(only, _PARTS)
    check_range("--runs", runs, 1, 1_000)
    check_range("--seconds", seconds, 10, 1_000_000)

    result = run(parts, runs, seconds, quiet=json)
    if picture:
        from levada.lab.stages.comparison import draw_comparison

        draw_comparison([(each.controller, each.paid_workers, each.late_s) for each in result.entries], picture)
    print_result(json, result.facts(), show, result)
