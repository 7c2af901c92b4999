"""`levada move`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_result
from levada.cli.terminal import printer, progress_bar
from levada.core.errors import UsageError
from levada.core.words import plural

if TYPE_CHECKING:
    from levada.collection.storage.bodies import BodiesMoved
    from levada.collection.storage.move import MoveReport

_SERVER = ("postgresql://", "postgres://")


def move(
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="The new folder.")] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(metavar="DSN|files", help="A PostgreSQL server, may be repeated; or files, back in the folder."),
    ] = None,
    bodies: Annotated[
        str, typer.Option(metavar="ADDRESS|rows", help="Only texts and bodies: to s3://... or file:///..., or rows.")
    ] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Delete the old copy once the new one is verified.")] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Moves a collection to another folder, to PostgreSQL servers, or from servers back into files.

    Stop its crawl, workers and dashboard first. Everything keeps its number: history, change log, feeds and
    notifications go on where they were. The old copy is kept under another name until you delete it. If the command
    is cut short, the collection is where it was: run it again. To move to another machine, send a backup there.

    Examples:

    ```
    levada move /srv/levada/news --data news
    levada move --to postgresql://levada@db.example.org/levada --data news
    levada move --to files --data news --remove
    levada move --bodies s3://bucket/news --data news
    levada move --bodies rows --data news
    levada backup - --data news | ssh host levada restore - --data news
    ```
    """
    if (folder is not None) + bool(to) + bool(bodies) != 1:
        raise UsageError(
            "name the new folder, or a server with --to postgresql://..., or --to files, or a place with --bodies"
        )
    from levada.collection.storage.move import FILES, move_folder, move_stores
    from levada.core.folder import DataFolder

    if bodies:
        _move_bodies(data, bodies, remove, json)
        return
    servers = [] if to == [FILES] else list(to or ())
    if wrong := next((each for each in servers if not each.startswith(_SERVER)), None):
        shown = wrong if wrong.isalnum() else "that"  # an address may hold a password
        raise UsageError(f"--to must be postgresql://... or files, not {shown[:50]!r}")
    with progress_bar(json, lines=False) as show:

        def told(what: str, done: int, total: int) -> None:
            show(done, total, what)

        if folder is not None:
            moved = move_folder(DataFolder(data), folder, remove=remove, on_progress=told)
        else:
            moved = move_stores(DataFolder(data), servers, remove=remove, on_progress=told)
    print_result(json, moved, _print, moved, folder is not None, bool(servers))


def _move_bodies(data: Path, target: str, remove: bool, json: bool) -> None:
    from levada.collection.storage.bodies import move_bodies
    from levada.core.folder import DataFolder

    with progress_bar(json, lines=False) as show:
        moved = move_bodies(
            DataFolder(data), target, remove=remove, on_progress=lambda what, done, total: show(done, total, what)
        )
    print_result(json, moved, _print_bodies)


def _print_bodies(moved: BodiesMoved) -> None:
    out = printer()
    where = "in the rows" if moved.place == "rows" else f"in {moved.place}"
    if not moved.moved:
        out.print(f"nothing to do: texts and bodies lie {where} already")
        return
    out.print(f"{plural(moved.moved, 'version')} moved: texts and bodies lie {where}")
    if moved.kept:
        out.print(f"the old copies are kept in {moved.kept}: delete them when all is well")


def _print(moved: MoveReport, to_folder: bool, to_servers: bool) -> None:
    out = printer()
    if to_folder:
        out.print(f"the collection lies in {moved.data}: {plural(moved.pages, 'page')} were copied and compared")
        out.print("the next search or crawl builds the index")
        if moved.kept:
            out.print(f"the old copy is kept in {moved.kept}: delete it when all is well")
        return
    where = "on the server" if to_servers else "in files"
    if not moved.moved:
        out.print(f"nothing to do: every shard lies {where} already")
        return
    out.print(f"{plural(moved.moved, 'shard')} moved: the collection lies {where}, its folder is still {moved.data}")
    if not moved.removed:
        old = "levada.db.moved.backup files" if to_servers else "their old schemas"
        out.print(f"the old copy is kept in {old}: delete it when all is well")
