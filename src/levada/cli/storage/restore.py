"""`levada restore`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.logs import tell
from levada.cli.options import STDOUT, DataOption, JsonOption, print_result
from levada.cli.terminal import printer, progress_bar
from levada.core.durations import moment
from levada.core.errors import StoreError, UsageError
from levada.core.words import plural

if TYPE_CHECKING:
    from levada.collection.storage.backup import OnProgress
    from levada.collection.storage.restore import RestoreReport


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `levada backup` wrote; - is standard input.")],
    data: DataOption = Path("levada-data"),
    force: Annotated[
        bool, typer.Option("--force", help="If the folder holds something, move that aside first.")
    ] = False,
    server: Annotated[
        list[str] | None, typer.Option(metavar="DSN", help="A PostgreSQL server that is to hold it; may be repeated.")
    ] = None,
    no_index: Annotated[bool, typer.Option("--no-index", help="Leave the index to the first search or crawl.")] = False,
    json: JsonOption = False,
) -> None:
    """Puts a backup into a new folder: all of it, verified, or nothing.

    The folder appears when everything is unpacked and checked. Shards that lay on a server lie in files afterwards,
    unless --server names a server, the same one or another. Then the index is built, so that everything can be
    searched at once; if that is interrupted, the first search or crawl goes on with it. A backup of an older Levada
    is upgraded when the collection is first opened.

    Examples:

    ```
    levada restore news.backup --data news
    levada restore news.backup --data news --force
    levada restore news.backup --data news --server postgresql://levada@db.example.org/levada
    ```
    """
    from msgspec.structs import replace

    from levada.collection.storage.restore import restore

    is_pipe = str(file) == STDOUT
    if is_pipe and sys.stdin.isatty():
        raise UsageError("nothing is sent here: name a file, or send a backup with |")
    with progress_bar(json, lines=False) as show:
        done = restore(
            sys.stdin.buffer if is_pipe else file,
            data,
            force=force,
            servers=tuple(server or ()),
            on_progress=lambda what, done, total: show(done, total, what),
        )
        if not no_index:
            done = replace(done, indexed=_index(data, lambda what, done, total: show(done, total, what)))
    print_result(json, done, _print)


def _index(data: Path, on_progress: OnProgress) -> bool:
    """Whether everything can be searched; what is in the way is said, for the collection itself is restored."""
    from levada.collection.search import build_index
    from levada.core.folder import DataFolder

    try:
        build_index(DataFolder(data), on_progress)
    except StoreError as error:
        tell(f"the index is not built yet: {error}", logging.WARNING)
        return False
    return True


def _print(done: RestoreReport) -> None:
    out = printer()
    where = f"on {plural(done.servers, 'server')}" if done.servers else f"in {done.data}"
    out.print(
        f"{plural(done.pages, 'page')} ({done.stored:,} stored, {plural(done.versions, 'version')}) on "
        f"{plural(done.shards, 'shard')} {where}, as of {moment(done.created)}"
    )
    if done.aside:
        out.print(f"what was there lies in {done.aside}: delete it when all is well")
    out.print("everything can be searched" if done.indexed else "the next search or crawl builds the index")
