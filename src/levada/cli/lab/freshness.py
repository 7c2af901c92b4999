"""`levada lab freshness`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from levada.cli.lab.tables import PictureOption, print_sections, records_table, require_lab, wide_printer
from levada.cli.options import JsonOption, print_result, split_names
from levada.cli.terminal import progress_bar
from levada.core.durations import duration
from levada.core.errors import UsageError
from levada.core.words import harmless, plural

if TYPE_CHECKING:
    from levada.lab.freshness.table import HistoryFile, PolicyRow, Spread, Summary
    from levada.lab.reference import Section

_COLUMNS: Mapping[str, Callable[[Summary], str]] = {
    "policy": lambda each: each.policy,
    "fetches": lambda each: _number(each.fetches.mean, ",.0f"),
    "freshness": lambda each: _with_deviation(each.freshness, ".4f"),
    "gap closed": lambda each: _with_deviation(each.gap_closed, ".0%"),
    "age": lambda each: _duration(each.age),
    "caught": lambda each: _number(each.caught.mean, ".1%"),
    "delay": lambda each: _duration(each.delay_p50),
    "p90": lambda each: _duration(each.delay_p90),
    "per fetch": lambda each: _number(each.changes_per_fetch.mean, ".3f"),
}


def show(result: FreshnessLabResult) -> None:
    from levada.lab.freshness.table import summarise

    out = wide_printer()
    for repair in result.repairs:
        out.print(f"set right: {harmless(repair)}")
    summaries = summarise(result.rows)
    seeds = len({row.seed for row in result.rows})
    for world in dict.fromkeys(each.world for each in summaries):
        of_world = [each for each in summaries if each.world == world]
        out.print(Text(f"\n{harmless(world)}{_basis(of_world, seeds)}", style="bold"))
        out.print(records_table(_COLUMNS, of_world, lambda each: "bold" if each.policy == "learned" else None))
    print_sections(out, result.sections, result.misprints)


def _basis(summaries: Sequence[Summary], seeds: int) -> str:
    """The seeds in words; a recorded history is the same for every seed."""
    chance = any(each.freshness.deviation for each in summaries)
    return f", mean and deviation over {plural(seeds, 'seed')}" if chance else ""


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _with_deviation(spread: Spread, form: str) -> str:
    if not spread.deviation:
        return _number(spread.mean, form)
    return f"{_number(spread.mean, form)} ± {_number(spread.deviation, form)}"


def _duration(spread: Spread) -> str:
    return "-" if spread.mean is None else duration(spread.mean)


@dataclass(frozen=True, slots=True)
class FreshnessLabResult:
    rows: list[PolicyRow]
    sections: list[Section]
    repairs: tuple[str, ...]
    misprints: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "claims": [claim for section in self.sections for claim in section.claims],
            "repairs": self.repairs,
            "misprints": self.misprints,
        }


def run(
    worlds: Sequence[str | HistoryFile], policies: Sequence[str], seeds: Sequence[int], *, quiet: bool
) -> FreshnessLabResult:
    """Run the comparison, and the paper's tables unless a file of histories is replayed."""
    from levada.lab.freshness.histories import read_history
    from levada.lab.freshness.paper import MISPRINTS, fitted_sections, trace_section
    from levada.lab.freshness.table import HistoryFile, rows

    files = [world for world in worlds if isinstance(world, HistoryFile)]
    repairs = tuple(repair for file in files for repair in read_history(file.path).repairs)
    with progress_bar(quiet) as progress:
        found = rows(worlds, policies, seeds, progress)
    if files:
        return FreshnessLabResult(found, [], repairs, ())
    return FreshnessLabResult(found, [trace_section(), *fitted_sections()], repairs, MISPRINTS)


_MOST_SEEDS = 10_000


def freshness(
    worlds: Annotated[str | None, typer.Option(metavar="A,B", help="Only these; a wrong name lists all.")] = None,
    policies: Annotated[str | None, typer.Option(metavar="A,B", help="Only these; a wrong name lists all.")] = None,
    seeds: Annotated[str, typer.Option(metavar="1-10", help="Which worlds of each kind.")] = "1-10",
    history: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Replay the histories of this file instead.")
    ] = None,
    days: Annotated[
        float | None, typer.Option(metavar="N", help="Of the file: the N days with most documents.")
    ] = None,
    picture: PictureOption = None,
    json: JsonOption = False,
) -> None:
    """Runs every policy in every world with as many fetches as the paper's rule spends there, and reruns the tables
    of the paper.

    All worlds and ten seeds take one to two minutes on two cores.

    A history file: `#` lines are comments; per document a line with tabs between name, first seen, deleted (or
    empty) and change times joined by commas; minutes from any zero; gzip or plain.

    Examples:

    ```
    levada lab freshness
    levada lab freshness --worlds poisson-7d,ota-1y --seeds 1-3
    levada lab freshness --history changes.tsv.gz --days 30 --json
    ```
    """
    require_lab(picture)
    from levada.lab.freshness.simulation import POLICIES

    run_worlds, chosen = _worlds(worlds, history, days), tuple(dict.fromkeys(split_names(policies)))
    result = run(run_worlds, chosen or POLICIES, _seeds(seeds), quiet=json)
    if picture:
        from levada.lab.freshness.table import draw, summarise

        draw(summarise(result.rows), picture)
    print_result(json, result.facts(), show, result)


def _worlds(names: str | None, history: Path | None, days: float | None) -> Sequence[str | HistoryFile]:
    from levada.lab.freshness.table import WORLDS, HistoryFile

    if history is None:
        if days is not None:
            raise UsageError("--days is for --history")
        return tuple(dict.fromkeys(split_names(names))) or WORLDS
    if names is not None:
        raise UsageError("--history replays one file: leave --worlds out")
    return (HistoryFile(history, days),)


def _seeds(typed: str) -> tuple[int, ...]:
    """`1-10`, `3`, `1,2,7-9`."""
    seeds: list[int] = []
    for part in typed.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or len(part) > 20:
            raise UsageError(f"--seeds: {part[:40]!r} is no number such as 3, nor a range such as 1-10")
        first, last = int(low), int(high) if dash else int(low)
        if last - first >= _MOST_SEEDS or last < first:
            raise UsageError(f"--seeds: {part[:40]!r} is empty or too long a range")
        seeds += range(first, last + 1)
    return tuple(dict.fromkeys(seeds))
