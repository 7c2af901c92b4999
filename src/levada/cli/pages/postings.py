"""`levada postings`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
import typer

from levada.cli.options import DataOption, JsonOption, print_json
from levada.cli.terminal import printer
from levada.core.errors import NotFound
from levada.core.words import line, shortened


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
    import levada

    typed = line(word)
    with levada.open(data, create=False) as collection:
        found = collection.postings(typed, limit=limit + 1)
    shown, more = found[:limit], len(found) > limit
    if json:
        rows = [msgspec.structs.asdict(each) | {"host": urlsplit(each.url).netloc} for each in shown]
        print_json({"word": typed, "postings": rows, "more": more})
        raise typer.Exit(0 if rows else NotFound.exit_code)
    if not shown:
        raise NotFound(f"{shortened(typed, 200)} stands in no stored page")
    out = printer()
    out.print(", ".join(f"{each.site}-{each.page}-{each.count}" for each in shown) + (", ..." if more else ""))
    if urls:
        sites = {each.site: urlsplit(each.url).netloc for each in shown}
        out.print()
        for number, site in sites.items():
            out.print(f"site {number}: {site}")
        for each in shown:
            out.print(f"{each.site}-{each.page}: {each.url}")
