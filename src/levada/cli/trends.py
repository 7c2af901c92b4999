"""`levada trends`: which terms grew most lately? And how evenly was the counting shared out?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_json
from levada.errors import NotFound

if TYPE_CHECKING:
    from levada.assemble.folder import DataFolder

__all__ = ["register"]

_BESIDE = ("key", "partial")


def register(app: typer.Typer) -> None:
    app.command()(trends)


def trends(
    site: Annotated[
        str | None, typer.Option("--site", metavar="S", help="Only of this host or one below it.")
    ] = None,
    lang: Annotated[str | None, typer.Option("--lang", metavar="L", help="Only in this language: en, tr.")] = None,
    window: Annotated[
        str, typer.Option("--window", metavar="T", help="How far back is lately: 90m, 24h, 7d, 2w.")
    ] = "24h",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1000, help="Terms to show.")] = 10,
    balance: Annotated[
        bool, typer.Option("--balance", help="Instead: how evenly the count workers are loaded.")
    ] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Shows the terms that pages gained lately, and more often than before.

    Counts first whatever is not counted yet: the first time that takes one to three milliseconds for each stored
    version. The window ends with the newest stored version and is compared with the seven before it; where there is
    too little past, with the documents themselves.

    Examples:

    ```
    levada trends
    levada trends --site example.org --lang tr --window 7d --limit 20
    levada trends --balance --json
    ```
    """
    from levada.assemble.folder import DataFolder
    from levada.pages.query import host_named
    from levada.telling.duration import length_of_time

    seconds = length_of_time(window, "--window")
    host = host_named(site) if site else None
    if balance:
        _show_balance(DataFolder(data), json)
    else:
        _show_trends(DataFolder(data), host, lang, seconds, limit, json)


def _show_trends(
    folder: DataFolder, site: str | None, lang: str | None, window: float, limit: int, json: bool
) -> None:
    from levada.assemble.counting import latest_change, open_trends
    from levada.cli.trends_print import print_trends, trend_facts
    from levada.flow.trending import trend_query, trending

    with _watching(folder) as progress, open_trends(folder, progress) as (collection, counts, report):
        step = collection.settings.trends.window
        ends = latest_change(collection)
        query = trend_query(ends, window, step, site, lang and lang.lower())
        found = trending(counts, query, limit)
    if json:
        print_json(trend_facts(query, found, report))
        raise typer.Exit(0 if found else NotFound.exit_code)
    if not found:
        raise NotFound("no term was added to pages more often than before")
    print_trends(query, found)


def _show_balance(folder: DataFolder, json: bool) -> None:
    from levada.assemble.counting import measure_balance
    from levada.assemble.reading import open_collection
    from levada.cli.trends_print import print_balance

    with _watching(folder) as progress, open_collection(folder) as collection:
        beside = [name for name in _BESIDE if name != collection.settings.trends.grouping]
        report = measure_balance(collection, beside, progress)
    if json:
        print_json(report)
        raise typer.Exit(0 if report.records else NotFound.exit_code)
    if not report.records:
        raise NotFound("there is nothing to count: no page is stored")
    print_balance(report)


@contextmanager
def _watching(folder: DataFolder) -> Iterator[Callable[[int], None]]:
    """Shows how far the counting is, on a terminal."""
    from levada.assemble.reading import open_collection
    from levada.cli.export_progress import shown_progress

    with open_collection(folder) as collection:
        newest = collection.store.newest_seq()
    at = [0]
    with shown_progress(newest, lambda: at[0], "counting"):
        yield lambda seq: at.__setitem__(0, seq)
