"""`levada warm`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_result
from levada.cli.terminal import progress_bar
from levada.core.words import harmless, plural

if TYPE_CHECKING:
    from levada.bulk.tasks import LoadStatus
    from levada.collection.warm_map import WarmMapResult


def warm(
    target: Annotated[
        str, typer.Option("--to", metavar="URL", help="redis://, or a folder; default: maps/ in the data folder.")
    ] = "",
    name: Annotated[str, typer.Option(metavar="NAME", help="Of the map.")] = "pages",
    replace: Annotated[bool, typer.Option("--replace", help="Even if the map holds something else.")] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Fills a map with a summary of each page, from the collection's own shards.

    `levada serve` answers `/api/v1/page` from it until a page is visited again; then it asks the store. The next
    warm reads only what was visited since the last one. It is a load like those of `levada load`: the same command
    on another machine joins it, and an interrupted one goes on.

    Examples:

    ```
    levada warm
    levada warm --data levada-demo-data --json
    levada warm --to redis://cache:6379/0 --name pages
    ```
    """
    from levada.collection.warm_map import warm as fill
    from levada.collection.warm_map import warm_request
    from levada.core.folder import DataFolder

    folder = DataFolder(data)
    request = warm_request(folder, target, name, replace=replace)
    _ = request.plan  # an invalid name is found here, before anything is written
    with progress_bar(json) as show:

        def watch(status: LoadStatus) -> None:
            done = status.done.tasks
            if done:
                show(done, done + status.waiting + status.leased, f"{status.done.rows:,} pages")

        warmed = fill(folder, request, watch)
    print_result(json, warmed, _say)


def _say(warmed: WarmMapResult) -> None:
    what = "" if warmed.whole else " that may have been visited since the last time"
    print(
        f"{warmed.name}: {plural(warmed.pages, 'page')}{what}, {warmed.pages_per_second:,.0f} pages/s, in "
        f"{harmless(warmed.target)}, generation {warmed.generation}"
    )
