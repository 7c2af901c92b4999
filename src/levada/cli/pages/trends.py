"""`levada trends`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levada.cli.options import DataOption, JsonOption, print_found
from levada.cli.terminal import printer, progress_bar
from levada.core.durations import iso, moment
from levada.core.words import harmless, plural

if TYPE_CHECKING:
    from levada.collection.trends import TrendReport
    from levada.core.balance import CountReport
    from levada.core.search_records import Trend, TrendQuery


def trend_facts(found: TrendReport) -> dict[str, Any]:
    query = found.query
    window = {"past": iso(query.past), "since": iso(query.since), "until": iso(query.until)}
    return window | {"trends": found.trends, "counting": found.counting}


def print_trends(query: TrendQuery, found: list[Trend]) -> None:
    from rich.text import Text

    out = printer()
    out.print(f"Added more often since {moment(query.since)} than before:", style="dim")
    wide = max(len(trend.term) for trend in found)
    for number, trend in enumerate(found, 1):
        shown = Text.assemble((f"{number:>3}. ", "dim"), (harmless(trend.term).ljust(wide), "bold cyan"))
        out.print(shown + f"  {trend_words(trend)}")


def trend_words(trend: Trend) -> str:
    """A trend in words: `tr  24 of 231 changes, otherwise in 13 of 871 documents; on 13 sites`."""
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
    out.print(f"{'grouping':<13} {'deviation %':>11} {'fullest':>8} {'per term':>9}  records per worker", style="dim")
    for load in report.balance:
        shares = " ".join(f"{each:,}" for each in load.loads[:16]) + (" ..." if len(load.loads) > 16 else "")
        out.print(
            f"{load.method:<13} {load.deviation_percent:>11.3f} {load.max_over_mean:>8.3f} "
            f"{load.distribution_cost:>9.3f}  {shares}"
        )
    hot = ", ".join(f"{harmless(each.term)} {each.records:,} ({each.workers})" for each in report.balance[0].hot)
    out.print(f"busiest terms, with their workers: {hot}")


def trends(
    site: Annotated[str | None, typer.Option(metavar="S", help="Only of this host or one below it.")] = None,
    lang: Annotated[str | None, typer.Option(metavar="L", help="Only in this language: en, tr.")] = None,
    window: Annotated[str, typer.Option(metavar="T", help="How far back is lately: 90m, 24h, 7d, 2w.")] = "24h",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Terms to show.")] = 10,
    balance: Annotated[
        bool, typer.Option("--balance", help="Instead: how evenly the count workers are loaded.")
    ] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Shows the terms that pages gained lately, and more often than before.

    Changes that are not counted yet are counted first, in one to three milliseconds for each stored version. The
    window ends with the newest stored version and is compared with the seven before it; where there is too little
    past, with the documents themselves.

    Examples:

    ```
    levada trends
    levada trends --site example.org --lang tr --window 7d --limit 20
    levada trends --balance --json
    ```
    """
    from levada.collection.trends import TrendReport, compare_groupings, find_trends

    count: Callable[..., CountReport | TrendReport] = compare_groupings
    if not balance:
        count = partial(find_trends, window=window, site=site or "", language=lang or "", limit=limit)
    with progress_bar(lines=False) as show:
        found = count(data, on_progress=lambda done, total: show(done, total, "counting"))
    if isinstance(found, TrendReport):
        nothing = "no term was added to pages more often than before"
        print_found(json, trend_facts(found), found.trends, nothing, print_trends, found.query, found.trends)
    else:
        print_found(json, found, found.records, "there is nothing to count: no page is stored", print_balance)
