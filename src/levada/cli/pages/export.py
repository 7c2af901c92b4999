"""`levada export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from levada.cli.options import STDOUT, DataOption, JsonOption, OutOption, print_json
from levada.cli.terminal import progress_bar
from levada.core.errors import UsageError
from levada.core.words import plural, size

_FLAGS = {"jsonl-markdown": "--jsonl --markdown"}
_READABLE = frozenset(("jsonl", "jsonl-markdown", "markdown"))


def export(
    jsonl: Annotated[bool, typer.Option("--jsonl", help="One JSON object per line and page.")] = False,
    markdown: Annotated[
        bool,
        typer.Option(
            "--markdown",
            help="Markdown, in one file, or a file per page if FILE ends in /; with --jsonl, a field of each object.",
        ),
    ] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="A Parquet table.")] = False,
    warc: Annotated[bool, typer.Option("--warc", help="WARC 1.1; compressed if FILE ends in .gz.")] = False,
    xml: Annotated[Path | None, typer.Option(metavar="DIR", help="One XML file per site: id, title, content.")] = None,
    format: Annotated[str, typer.Option(metavar="NAME", help="A format by name, built in or of a plug-in.")] = "",
    out: OutOption = STDOUT,
    site: Annotated[str, typer.Option(metavar="HOST", help="Only this host and those below it.")] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="Only what changed since: 7d, 24h, 2026-01-31.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace what is there already.")] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Writes the stored pages, in one of five formats or that of a plug-in, whatever their number.

    `fetched_at` says when the stored version was fetched, `checked_at` when a visit last met it, `changed_at` when
    the page was first seen to be as it is. A file appears under its name only when it is whole.

    Examples:

    ```
    levada export --jsonl | head -n 1
    levada export --jsonl --site example.org --since 7d --out week.jsonl
    levada export --markdown --site docs.example.org --out docs.md
    levada export --markdown --out notes/
    levada export --jsonl --markdown --out pages.jsonl
    levada export --parquet --out pages.parquet
    levada export --warc --out pages.warc.gz
    levada export --xml pages/
    levada export --format jsonl --out pages.jsonl
    ```
    """
    both = jsonl and markdown
    flags = {"jsonl": jsonl and not both, "markdown": markdown and not both, "jsonl-markdown": both}
    form = _format(format, {**flags, "parquet": parquet, "warc": warc, "xml": xml is not None})
    if xml is not None:
        _check_folder(xml, out)
    elif not format or out == STDOUT:
        _check_file(form, out, json)
    import levada

    target = str(xml) if xml is not None else out
    if form == "markdown" and out != STDOUT and not out.endswith((".md", "/")) and not Path(out).is_dir():
        raise UsageError(f"--markdown --out {out}: end the name in .md for one file, or in / for a file per page")
    with levada.open(data, create=False) as collection, progress_bar(lines=False) as show:
        done = collection.export(
            target,
            form,
            site=site,
            since=since or None,
            force=force,
            stdout=sys.stdout.buffer if target == STDOUT else None,
            on_progress=lambda seen, total: show(seen, total, "exporting"),
        )
    if json:
        print_json({"format": form, "out": target, "pages": done.pages, "bytes": done.bytes})
    else:
        where = "" if target == STDOUT else f" in {target}"
        print(f"{plural(done.pages, 'page')}, {size(done.bytes)}{where}", file=sys.stderr)


def _format(named: str, flags: dict[str, bool]) -> str:
    chosen = [_FLAGS.get(name, f"--{name}") for name, wanted in flags.items() if wanted]
    chosen += [f"--format {named}"] * bool(named)
    if len(chosen) != 1:
        given = " and ".join(chosen) or "none"
        known = "--jsonl, --markdown, --parquet, --warc, --xml DIR or --format NAME"
        raise UsageError(f"name one format: {known} (given: {given})")
    return named or next(name for name, wanted in flags.items() if wanted)


def _check_folder(folder: Path, out: str) -> None:
    if out != STDOUT:
        raise UsageError("--xml names its folder itself: leave --out away")
    if str(folder) == STDOUT:
        raise UsageError("--xml writes a folder, with a file for each site, not standard output: --xml pages/")


def _check_file(form: str, out: str, json: bool) -> None:
    if not out:
        raise UsageError("--out needs the name of a file, or - for standard output")
    if out != STDOUT:
        return
    if json:
        raise UsageError("--json reports on a file: name one with --out FILE (for pages as JSON: --jsonl alone)")
    if form not in _READABLE and sys.stdout.isatty():
        raise UsageError(f"--{form} is not for reading on a terminal: name a file with --out FILE")
