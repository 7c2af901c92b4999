"""`levada why`: why is this page visited again just then, or not at all? And what would another budget buy?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_json
from levada.errors import UsageError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command()(why)


def why(
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="The page; https:// may be left out.", show_default=False)
    ] = None,
    budget: Annotated[
        bool, typer.Option("--budget", help="Instead of a page: how fresh all pages are with more or less fetches.")
    ] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Says when a page is visited next, and why then; or, with --budget, what more fetches would gain.

    On the line of visits `+` is the first, `●` one that met a change, `○` one that met none, `▷` the next. The bars
    below it show how likely each interval between changes is.

    Examples:

    ```
    levada why https://example.org/news
    levada why example.org/news --json
    levada why --budget
    ```
    """
    from levada.assemble.folder import DataFolder
    from levada.assemble.reading import open_collection
    from levada.cli import why_budget, why_page
    from levada.telling.addresses import known_page, spellings
    from levada.telling.outlook import outlook, outlook_facts
    from levada.telling.why_facts import page_facts

    if budget == (url is not None):
        raise UsageError(
            "name a page or --budget, not both" if budget else "name a page, or --budget for all of them"
        )
    with open_collection(DataFolder(data)) as collection:
        if url is None:
            plan = outlook(collection)
            print_json(outlook_facts(plan)) if json else why_budget.show(plan)
        else:
            page = known_page(collection, spellings(url))
            print_json(page_facts(collection, page)) if json else why_page.show(collection, page)
