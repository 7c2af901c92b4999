"""`levada shard apply`: how does a collection come to other shards?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_json
from levada.errors import UsageError

if TYPE_CHECKING:
    from levada.adapters.sharded.resharding import Moved
    from levada.assemble.folder import DataFolder
    from levada.assemble.resharding import Resharded
    from levada.sharding.placement import Placement

__all__ = ["register"]

_KEYS = ("site", "section", "url")


def register(app: typer.Typer) -> None:
    app.command("apply")(apply)


def apply(
    shards: Annotated[
        int | None, typer.Option("--shards", metavar="K", min=1, max=256, help="How many there are to be.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="What places a page: site, section or url.")
    ] = None,
    advised: Annotated[
        bool, typer.Option("--advised", help="Place pages by what was asked (serve --capture, search --capture).")
    ] = False,
    server: Annotated[
        list[str] | None,
        typer.Option("--server", metavar="DSN", help="A PostgreSQL server that is to hold them; may be repeated."),
    ] = None,
    back: Annotated[
        bool, typer.Option("--back", help="Take back the move that is under way: pages return to where they were.")
    ] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Moves a collection to other shards, beside a running crawl or alone.

    Pages move some at a time, with all their versions; everybody goes on reading and writing. If it is cut short,
    the same command goes on where it was; without options it finishes whatever was begun, and `--back` takes that
    back, however far it is. A collection that is still one file needs its crawl to be stopped for the first step.
    With `--advised`, the key and the cuts between shards come from the questions that were captured, as the
    dashboard's page of shards shows them.

    Examples:

    ```
    levada shard apply --shards 4
    levada shard apply --key url --shards 8
    levada shard apply --advised --shards 4
    levada shard apply --server postgresql://one/levada --server postgresql://two/levada --shards 8
    levada shard apply
    levada shard apply --back
    ```
    """
    if key is not None and key not in _KEYS:
        raise UsageError(f"--key {key[:50]!r} is none of {', '.join(_KEYS)}")
    if key is not None and advised:
        raise UsageError("--advised finds the key by itself: leave --key out")
    if back and (shards or key or advised or server):
        raise UsageError("--back takes pages to where they were: leave the other options out")
    from levada.assemble.folder import DataFolder
    from levada.assemble.resharding import ShardWish, apply_shards
    from levada.cli.watching import watching

    placement = _advised(DataFolder(data), shards or len(server or ()) or None) if advised else None
    with watching(json) as progress:

        def told(moved: Moved, known: int) -> None:
            if progress:  # some pages are looked at again where they have come to
                progress(min(moved.looked_at, known), known, "moving pages")

        done = apply_shards(
            DataFolder(data), ShardWish(shards, key, tuple(server or ()), placement, back), on_progress=told
        )
    if json:
        print_json(done)
    else:
        _say(done)


def _advised(folder: DataFolder, shards: int | None) -> Placement:
    from levada.assemble.own_shards import own_placement
    from levada.assemble.reading import open_collection

    with open_collection(folder) as collection:
        return own_placement(collection, folder.queries, shards)


def _say(done: Resharded) -> None:
    from levada.cli.printing import plural, printer

    out = printer()
    place = plural(done.shards, "shard")
    out.print(
        f"{plural(done.moved, 'page')} moved in {done.seconds:.1f} s; the collection lies on {place} by {done.key}"
    )
    for number, pages in enumerate(done.pages):
        out.print(f"  shard {number}: {plural(pages, 'page')}")
