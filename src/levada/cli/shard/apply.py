"""`levada shard apply`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_result
from levada.cli.terminal import printer, progress_bar
from levada.core.errors import UsageError
from levada.core.words import plural

if TYPE_CHECKING:
    from levada.collection.shards import CitusShards, PlannedMove, Resharded

_KEYS = ("site", "section", "url")


def apply(
    shards: Annotated[int | None, typer.Option(metavar="K", min=1, max=256, help="How many there are to be.")] = None,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="What places a page: site, section or url.")] = None,
    advised: Annotated[
        bool, typer.Option("--advised", help="Place pages by what was asked (serve --capture, search --capture).")
    ] = False,
    server: Annotated[
        list[str] | None, typer.Option(metavar="DSN", help="A PostgreSQL server that is to hold them; may be repeated.")
    ] = None,
    back: Annotated[
        bool, typer.Option("--back", help="Take back the move that is under way: pages return to where they were.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many pages would move, and change nothing.")
    ] = False,
    citus: Annotated[
        bool, typer.Option("--citus", help="Let Citus spread the shards over its nodes; --dry-run prints the SQL.")
    ] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Moves a collection to other shards, beside a running crawl or alone.

    Pages move some at a time, with all their versions; everybody goes on reading and writing. No more pages move than
    must: to add a server to two, name all three, and a third of the pages moves. `--dry-run` counts them first. If
    it is cut short, the same command goes on where it was; without options it finishes whatever was begun, and
    `--back` takes that back, however far it is. A collection that is still one file needs its crawl to be stopped for
    the first step.

    With `--citus`, the shards that lie on a coordinator of Citus (12 or newer) are spread over its nodes, each with
    all its tables on one node.

    With `--advised`, the key and the cuts between shards come from the questions that were captured, as the
    dashboard's page of shards shows them.

    Examples:

    ```
    levada shard apply --shards 4
    levada shard apply --key url --shards 8
    levada shard apply --advised --shards 4
    levada shard apply --server postgresql://one/levada --server postgresql://two/levada --shards 8
    levada shard apply --shards 8 --dry-run
    levada shard apply --citus --dry-run
    levada shard apply
    levada shard apply --back
    ```
    """
    if key is not None and key not in _KEYS:
        raise UsageError(f"--key {key[:50]!r} is none of {', '.join(_KEYS)}")
    if key is not None and advised:
        raise UsageError("--advised finds the key by itself: leave --key out")
    if citus and (shards or key or advised or server or back):
        raise UsageError("--citus spreads the shards that are there: move the pages first, then run it by itself")
    if back and (shards or key or advised or server):
        raise UsageError("--back takes pages to where they were: leave the other options out")
    from levada.collection.shards import ReshardOptions, apply_shards, planned_move, spread_by_citus
    from levada.core.folder import DataFolder

    options = ReshardOptions(shards, key, tuple(server or ()), back=back, advised=advised)
    if citus:
        spread = spread_by_citus(DataFolder(data), dry_run=dry_run)
        print_result(json, {"servers": spread}, partial(_say_spread, spread, dry_run))
        return
    if dry_run:
        print_result(json, planned_move(DataFolder(data), options), _say_planned)
        return
    with progress_bar(json) as show:
        done = apply_shards(
            DataFolder(data),
            options,
            # Some pages are looked at again on the shard to which they moved.
            on_progress=lambda moved, known: show(min(moved.looked_at, known), known, "moving pages"),
        )
    print_result(json, done, _say)


def _say_spread(spread: Sequence[CitusShards], dry_run: bool, _facts: object) -> None:
    out = printer()
    for each in spread:
        if dry_run:
            out.print(f"-- {each.server}", *(f"{statement};" for statement in each.sql), sep="\n")
        else:
            out.print(f"{plural(len(each.schemas), 'shard')} on {plural(each.nodes, 'Citus node')} of {each.server}")


def _say_planned(planned: PlannedMove) -> None:
    out = printer()
    out.print(
        f"{planned.moves:,} of {plural(planned.pages, 'page')} would move; the collection would lie on "
        f"{plural(len(planned.shards), 'shard')} by {planned.key}"
    )
    for place in planned.shards:
        out.print(f"  {place}")


def _say(done: Resharded) -> None:
    out = printer()
    place = f"{plural(done.shards, 'shard')} by {done.key}"
    out.print(f"{plural(done.moved, 'page')} moved in {done.seconds:.1f} s; the collection lies on {place}")
    for number, pages in enumerate(done.pages):
        out.print(f"  shard {number}: {plural(pages, 'page')}")
