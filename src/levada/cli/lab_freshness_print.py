"""How is a run of the freshness laboratory shown to a person?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from levada.cli.lab_tables import figures_table, print_sections, wide_printer
from levada.cli.printing import harmless, plural
from levada.telling.duration import duration

if TYPE_CHECKING:
    from levada.cli.lab_freshness_run import Result
    from levada.lab.freshness.summary import Spread, Summary

__all__ = ["show"]

_COLUMNS = ("policy", "fetches", "freshness", "gap closed", "age", "caught", "delay", "p90", "per fetch")


def show(result: Result) -> None:
    from levada.lab.freshness.summary import summarise

    out = wide_printer()
    for repair in result.repairs:
        out.print(f"set right: {harmless(repair)}")
    summaries = summarise(result.rows)
    seeds = len({row.seed for row in result.rows})
    for world in dict.fromkeys(each.world for each in summaries):
        of_world = [each for each in summaries if each.world == world]
        out.print(Text(f"\n{harmless(world)}{_basis(of_world, seeds)}", style="bold"))
        out.print(_world_table(of_world))
    print_sections(out, result.sections, result.misprints)


def _basis(summaries: Sequence[Summary], seeds: int) -> str:
    """A history has no chance in it: all seeds are alike."""
    chance = any(each.freshness.deviation for each in summaries)
    return f", mean and deviation over {plural(seeds, 'seed')}" if chance else ""


def _world_table(summaries: Sequence[Summary]) -> Table:
    table = figures_table(_COLUMNS)
    for each in summaries:
        table.add_row(
            each.policy,
            _number(each.fetches.mean, ",.0f"),
            _with_deviation(each.freshness, ".4f"),
            _with_deviation(each.gap_closed, ".0%"),
            _duration(each.age),
            _number(each.caught.mean, ".1%"),
            _duration(each.delay_p50),
            _duration(each.delay_p90),
            _number(each.changes_per_fetch.mean, ".3f"),
            style="bold" if each.policy == "learned" else None,
        )
    return table


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _with_deviation(spread: Spread, form: str) -> str:
    if not spread.deviation:
        return _number(spread.mean, form)
    return f"{_number(spread.mean, form)} ± {_number(spread.deviation, form)}"


def _duration(spread: Spread) -> str:
    return "-" if spread.mean is None else duration(spread.mean)
