"""`levada backup`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import STDOUT, DataOption, JsonOption, print_result
from levada.cli.terminal import printer, progress_bar
from levada.core.durations import moment
from levada.core.errors import UsageError
from levada.core.words import plural, size

if TYPE_CHECKING:
    from levada.collection.storage.backup import BackupReport


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; - is standard output.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the backup FILE instead, and say what it holds.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    keys_only: Annotated[
        bool, typer.Option("--keys-only", help="Leave bodies in the folder or bucket of store.bodies.")
    ] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Saves a whole collection in one file, also while it is crawled, and reads the file back.

    It holds pages with all versions, visits and what was learned from them, the change log, settings, notifications,
    commands and counts, as they were at one moment. The index and maps are not in it: they are built again. The file
    is for its owner alone, because notifications hold passwords. `levada restore` puts it back.

    Texts and bodies in object storage are in the file too, so that it is whole. With `--keys-only` they stay there: the
    file is small, and good as long as nobody deletes them there.

    Examples:

    ```
    levada backup news.backup --data news
    levada backup news.backup --verify
    levada backup - --data news | ssh host levada restore - --data news
    ```
    """
    from levada.collection.storage.backup import back_up, verify_backup
    from levada.core.folder import DataFolder

    if str(file) == STDOUT:
        if verify:
            raise UsageError("--verify reads a file: name it")
        if json:
            raise UsageError("--json reports on a file: name one instead of -")
        if sys.stdout.isatty():
            raise UsageError("a backup is not for a terminal: name a file, or send it on with |")
        with progress_bar(lines=False) as show:
            back_up(
                DataFolder(data),
                sys.stdout.buffer,
                keys_only=keys_only,
                on_progress=lambda what, done, total: show(done, total, what),
            )
        return
    with progress_bar(json, lines=False) as show:
        if verify:
            report = verify_backup(file, lambda what, done, total: show(done, total, what))
        else:
            report = back_up(
                DataFolder(data),
                file,
                force=force,
                keys_only=keys_only,
                on_progress=lambda what, done, total: show(done, total, what),
            )
    print_result(json, report, _print, report, verify)


def _print(report: BackupReport, old: bool) -> None:
    out = printer()
    holds = f"{plural(report.pages, 'page')} ({report.stored:,} stored, {plural(report.versions, 'version')})"
    out.print(f"{report.file}: {holds} on {plural(len(report.shards), 'shard')}, {size(report.bytes)}")
    made = f"made {moment(report.created)} by Levada {report.levada}; " if old else ""
    out.print(f"{made}read back: all of it is whole")
    if report.bodies_in:
        out.print(f"texts and bodies are not in it: they stay in {report.bodies_in}")
