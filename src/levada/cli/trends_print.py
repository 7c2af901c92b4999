"""How do trends and the load of the count workers look to a person, and to a program?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from levada.cli.printing import harmless, plural, printer
from levada.telling.duration import iso, moment

if TYPE_CHECKING:
    from levada.counts import TrendQuery
    from levada.flow.balance import CountReport
    from levada.flow.trending import Trend

__all__ = ["print_balance", "print_trends", "trend_facts", "trend_words"]


def trend_facts(query: TrendQuery, found: list[Trend], report: CountReport) -> dict[str, Any]:
    return {
        "past": iso(query.past),
        "since": iso(query.since),
        "until": iso(query.until),
        "trends": found,
        "counting": report,
    }


def print_trends(query: TrendQuery, found: list[Trend]) -> None:
    from rich.text import Text

    out = printer()
    out.print(f"Added more often since {moment(query.since)} than before:", style="dim")
    wide = max(len(trend.term) for trend in found)
    for number, trend in enumerate(found, 1):
        shown = Text.assemble((f"{number:>3}. ", "dim"), (harmless(trend.term).ljust(wide), "bold cyan"))
        out.print(shown + f"  {trend_words(trend)}")


def trend_words(trend: Trend) -> str:
    """`tr  24 of 231 changes, before in 13 of 871 documents; 13 sites`."""
    past = f"{trend.past:,} of {trend.past_changes:,}"
    before = f"before {past}" if trend.against == "changes" else f"otherwise in {past} documents"
    return (
        f"{trend.language or '-':<3} {trend.now:,} of {plural(trend.changes, 'change')}, {before}; "
        f"on {plural(trend.sites, 'site')}"
    )


def print_balance(report: CountReport) -> None:
    out = printer()
    out.print(
        f"{plural(report.records, 'record')} of {plural(report.changes, 'changed document')} "
        f"in {plural(report.rounds, 'round')}; at most {plural(report.most_held, 'partial count')} held "
        f"({report.memory_bytes / 1e6:,.1f} MB)"
    )
    out.print(
        f"{'grouping':<13} {'deviation %':>11} {'fullest':>8} {'per term':>9}  records per worker", style="dim"
    )
    for load in report.balance:
        shares = " ".join(f"{each:,}" for each in load.loads[:16]) + (" ..." if len(load.loads) > 16 else "")
        out.print(
            f"{load.method:<13} {load.deviation_percent:>11.3f} {load.max_over_mean:>8.3f} "
            f"{load.distribution_cost:>9.3f}  {shares}"
        )
    hot = ", ".join(f"{harmless(each.term)} {each.records:,} ({each.workers})" for each in report.balance[0].hot)
    out.print(f"busiest terms, with their workers: {hot}")
