"""`levada postings`: where does the inverted index say that a word stands? The paper's own view of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_json
from levada.errors import NotFound

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command()(postings)


def postings(
    word: Annotated[str, typer.Argument(metavar="WORD", help="One word.")],
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1_000_000, help="Pages to list at most.")] = 1_000,
    urls: Annotated[bool, typer.Option("--urls", help="Say which site and page each number stands for.")] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Lists in which pages a word stands and how often, as `site-url-count`.

    `1-3-8, 62-3340-1` says: 8 times in URL 3 of site 1, and once in URL 3340 of site 62.

    Examples:

    ```
    levada postings istanbul
    levada postings istanbul --urls --limit 20
    levada postings istanbul --json
    ```
    """
    from levada.assemble.folder import DataFolder
    from levada.assemble.searching import open_search
    from levada.cli.printing import line, printer, shortened
    from levada.pages.urls import site_of

    typed = line(word)
    with open_search(DataFolder(data)) as (_, index):
        found = index.postings(typed, limit + 1)
    shown, more = found[:limit], len(found) > limit
    if json:
        rows = [
            {"site": each.site, "page": each.page, "count": each.count, "host": site_of(each.url), "url": each.url}
            for each in shown
        ]
        print_json({"word": typed, "postings": rows, "more": more})
        raise typer.Exit(0 if rows else NotFound.exit_code)
    if not shown:
        raise NotFound(f"{shortened(typed, 200)} stands in no stored page")
    out = printer()
    out.print(", ".join(f"{each.site}-{each.page}-{each.count}" for each in shown) + (", ..." if more else ""))
    if urls:
        sites = {each.site: site_of(each.url) for each in shown}
        out.print()
        for number, site in sites.items():
            out.print(f"site {number}: {site}")
        for each in shown:
            out.print(f"{each.site}-{each.page}: {each.url}")
