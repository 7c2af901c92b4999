"""`levada warm`: how does the server come to answer for pages from memory?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_json

if TYPE_CHECKING:
    from levada.assemble.warming import Warmed
    from levada.bulk.tasks import Standing

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command()(warm)


def warm(
    target: Annotated[
        str, typer.Option("--to", metavar="URL", help="redis://, or a folder; default: maps/ in the data folder.")
    ] = "",
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Of the map.")] = "pages",
    replace: Annotated[bool, typer.Option("--replace", help="Even if the map holds something else.")] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Fills a map with what is known of each page, from the collection's own shards.

    `levada serve` answers `/api/v1/page` from it as long as a page is as it was; a page that was visited since is
    asked of the store. A further warm takes only what was visited since the last one. It is a load like those of
    `levada load`: the same line beside it joins, and one that was broken off goes on.

    Examples:

    ```
    levada warm
    levada warm --data levada-demo-data --json
    levada warm --to redis://cache:6379/0 --name pages
    ```
    """
    from levada.assemble.folder import DataFolder
    from levada.assemble.warming import warm as fill
    from levada.assemble.warming import warm_request
    from levada.cli.watching import watching

    folder = DataFolder(data)
    request = warm_request(folder, target, name, replace=replace)
    _ = request.plan  # a name that cannot be is found here, before anything is written
    with watching(json) as show:

        def watch(standing: Standing) -> None:
            done = standing.done.tasks
            if show is not None and done:
                show(done, done + standing.waiting + standing.leased, f"{standing.done.rows:,} pages")

        warmed = fill(folder, request, watch)
    if json:
        print_json(warmed)
    else:
        _say(warmed)


def _say(warmed: Warmed) -> None:
    from levada.cli.printing import harmless, plural

    what = "" if warmed.whole else " that may have been visited since the last time"
    print(
        f"{warmed.name}: {plural(warmed.pages, 'page')}{what}, {warmed.pages_per_second:,.0f} pages/s, in "
        f"{harmless(warmed.target)}, generation {warmed.generation}"
    )
