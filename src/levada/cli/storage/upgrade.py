"""`levada upgrade`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_result
from levada.cli.terminal import printer, progress_bar
from levada.core.words import plural, size

if TYPE_CHECKING:
    from levada.collection.storage.upgrade import ShardUpgrade, Upgrade


def upgrade(
    data: DataOption = Path("levada-data"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")] = False,
    no_backup: Annotated[
        bool, typer.Option("--no-backup", help="Keep no copy of the older store: half the room, and no way back.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Brings a collection of an older Levada to the newest format, after a backup of each shard.

    A folder below 1 GiB is upgraded by the first command that opens it; larger ones, and collections on servers,
    wait for this command. Stop crawls, workers and servers that use the collection first. If it is cut short, the
    same command goes on where it was.

    Examples:

    ```
    levada upgrade --dry-run
    levada upgrade --data news
    levada upgrade --data news --no-backup --json
    ```
    """
    from levada.collection.storage.upgrade import planned_upgrade, upgrade
    from levada.core.folder import DataFolder

    folder = DataFolder(data)
    if dry_run:
        planned = planned_upgrade(folder, backup=not no_backup)
        print_result(json, planned, _print, planned, data)
        return
    with progress_bar(json) as show:
        done = upgrade(folder, backup=not no_backup, on_progress=lambda what, done, total: show(done, total, what))
    print_result(json, done, _print, done, data)


def _print(upgrade: Upgrade, data: Path) -> None:
    out = printer()
    for shard in upgrade.shards:
        out.print(f"{shard.place}: {_said(shard, done=upgrade.done)}")
    if not upgrade.shards:
        out.print(f"the collection in {data} is kept by a plug-in, which looks after its own format")
    elif not upgrade.outdated:
        out.print("nothing to do")
    elif not upgrade.done:
        out.print(f"{plural(upgrade.outdated, 'shard')} to upgrade, room needed: {size(upgrade.room)}; nothing changed")


def _said(shard: ShardUpgrade, *, done: bool) -> str:
    holds = f"{plural(shard.pages, 'page')}, {size(shard.bytes)}"
    if shard.todo == "nothing":
        return f"format {shard.format}, the newest; {holds}"
    if not done:
        how = "an upgrade began and goes on" if shard.todo == "go on" else "to be upgraded"
        return f"format {shard.format}, the newest is {shard.newest}; {holds}; {how}, room needed: {size(shard.room)}"
    kept = f"; the older one is kept in {shard.backup}: delete it when all is well" if shard.backup else ""
    return f"upgraded from format {shard.format} to {shard.newest}; {holds}{kept}"
