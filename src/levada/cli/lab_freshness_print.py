"""How is a run of the freshness laboratory shown to a person?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from levada.cli.duration import duration
from levada.cli.printing import harmless, plural, printer

if TYPE_CHECKING:
    from levada.cli.lab_freshness_run import Result
    from levada.lab.claims import Claim, Section
    from levada.lab.freshness.summary import Spread, Summary

__all__ = ["show"]

_WIDTH = 116  # what the tables need; a pipe has no width of its own
_VERDICTS = {"holds": ("", "green"), "misses": (" ✗", "red"), "misprint": (" *", "yellow")}
_COLUMNS = ("policy", "fetches", "freshness", "gap closed", "age", "caught", "delay", "p90", "per fetch")


def show(result: Result) -> None:
    from levada.lab.freshness.summary import summarise

    out = printer()
    out.width = max(out.width, _WIDTH)
    for repair in result.repairs:
        out.print(f"set right: {harmless(repair)}")
    summaries = summarise(result.rows)
    seeds = len({row.seed for row in result.rows})
    for world in dict.fromkeys(each.world for each in summaries):
        of_world = [each for each in summaries if each.world == world]
        out.print(Text(f"\n{harmless(world)}{_basis(of_world, seeds)}", style="bold"))
        out.print(_world_table(of_world))
    for section in result.sections:
        out.print(Text(f"\n{section.title}: printed | ours", style="bold"))
        out.print(_section_table(section))
    if result.sections:
        out.print(_tally(result.sections))
    for misprint in result.misprints:
        out.print(f"* misprint, {misprint}")


def _basis(summaries: Sequence[Summary], seeds: int) -> str:
    """A history has no chance in it: all seeds are alike."""
    chance = any(each.freshness.deviation for each in summaries)
    return f", mean and deviation over {plural(seeds, 'seed')}" if chance else ""


def _world_table(summaries: Sequence[Summary]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(_COLUMNS):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
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


def _section_table(section: Section) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("", no_wrap=True)
    for column in section.columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, claims in section.rows:
        table.add_row(name, *(_cell(claim) for claim in claims))
    return table


def _cell(claim: Claim) -> Text:
    mark, style = _VERDICTS[claim.verdict]
    return Text(f"{claim.printed:,.6g} | {claim.measured:,.5g}{mark:2}", style=style)


def _tally(sections: Sequence[Section]) -> str:
    counts = Counter(claim.verdict for section in sections for claim in section.claims)
    return (
        f"\nOf {counts.total()} printed figures {counts['holds']} come out again within their bands, "
        f"{counts['misprint']} are misprints (*) that do once corrected, and {counts['misses']} miss (✗)."
    )
