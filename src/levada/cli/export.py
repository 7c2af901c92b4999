"""`levada export`: how do the stored pages get out?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.options import DataOption, JsonOption, print_json
from levada.errors import BadUrl, NotFound, UsageError

if TYPE_CHECKING:
    from levada.adapters.exports.whole_file import CountingOutput
    from levada.assemble.reading import Collection
    from levada.records import Document

__all__ = ["register"]

_STDOUT = "-"


def register(app: typer.Typer) -> None:
    app.command()(export)


def export(
    jsonl: Annotated[bool, typer.Option("--jsonl", help="One JSON object per line and page.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="A Parquet table.")] = False,
    warc: Annotated[bool, typer.Option("--warc", help="WARC 1.1; compressed if FILE ends in .gz.")] = False,
    xml: Annotated[
        Path | None, typer.Option("--xml", metavar="DIR", help="One XML file per site: id, title, content.")
    ] = None,
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Where to; - is standard output.")] = _STDOUT,
    site: Annotated[str, typer.Option(metavar="HOST", help="Only this host and those below it.")] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="Only what changed since: 7d, 24h, 2026-01-31.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace what is there already.")] = False,
    data: DataOption = Path("levada-data"),
    json: JsonOption = False,
) -> None:
    """Writes the stored pages, in one of four forms, whatever their number.

    `fetched_at` says when the stored version was fetched, `checked_at` when a visit last met it, `changed_at` when
    the page was first seen to be as it is. A file appears under its name only when it is whole.

    Examples:

    ```
    levada export --jsonl | head -n 1
    levada export --jsonl --site example.org --since 7d --out week.jsonl
    levada export --parquet --out pages.parquet
    levada export --warc --out pages.warc.gz
    levada export --xml pages/
    ```
    """
    form = _form(jsonl, parquet, warc, xml is not None)
    if xml is not None:
        _check_folder(xml, out)
    else:
        _check_file(form, out, json)
    from levada.assemble.folder import DataFolder
    from levada.assemble.moving_lock import nobody_moves
    from levada.assemble.reading import open_collection
    from levada.cli.export_progress import shown_progress

    target = str(xml) if xml is not None else out
    folder = DataFolder(data)
    with open_collection(folder) as collection, nobody_moves(folder):
        pages = _Pages(collection, site, since)
        total = collection.store.standing(collection.clock.now()).stored
        with shown_progress(total, lambda: pages.seen):
            stream = pages.checked()
            written = _write_xml(stream, xml, force) if xml is not None else _write(stream, form, out, force)
    if json:
        print_json({"format": form, "out": target, "pages": pages.taken, "bytes": written})
    else:
        _say(pages.taken, written, target)


class _Pages:
    """The pages to export, counted as they are taken."""

    def __init__(self, collection: Collection, site: str, since: str) -> None:
        from levada.telling.duration import since_moment

        self._store = collection.store
        self._folder = collection.folder.path
        self._site = _site(site) if site else ""
        self._since = since_moment(since, collection.clock.now()) if since else None
        self.seen = 0
        self.taken = 0

    def __iter__(self) -> Iterator[Document]:
        for document in self._store.scan():
            self.seen += 1
            if self._wanted(document):
                self.taken += 1
                yield document

    def _wanted(self, document: Document) -> bool:
        if self._site and not _within(document.site, self._site):
            return False
        return self._since is None or document.fetched_at >= self._since

    def checked(self) -> Iterator[Document]:
        """The same, but `NotFound` before the first byte is written if there is none."""
        pages = iter(self)
        first = next(pages, None)
        if first is None:
            narrowed = " that was asked for" if self._site or self._since is not None else ""
            raise NotFound(f"no page{narrowed} is stored in {self._folder}")
        return chain([first], pages)


def _site(typed: str) -> str:
    from levada.pages.urls import canonical, site_of

    try:
        return site_of(canonical(typed if "://" in typed else f"https://{typed}"))
    except BadUrl as error:
        said = str(error).replace("'https://", "'")  # which nobody has typed
        raise UsageError(f"--site is no host, such as example.org or example.org:8080: {said}") from None


def _within(site: str, wanted: str) -> bool:
    """Is it this host, or one below it? As `site:` in a search; a port is taken at its word."""
    host = site if site.endswith("]") else site.rpartition(":")[0] or site
    return wanted in (site, host) or host.endswith(f".{wanted}")


def _form(jsonl: bool, parquet: bool, warc: bool, xml: bool) -> str:
    chosen = [
        name for name, wanted in (("jsonl", jsonl), ("parquet", parquet), ("warc", warc), ("xml", xml)) if wanted
    ]
    if len(chosen) != 1:
        said = " and ".join(f"--{name}" for name in chosen) or "none"
        raise UsageError(f"name one form: --jsonl, --parquet, --warc or --xml DIR (given: {said})")
    return chosen[0]


def _check_folder(folder: Path, out: str) -> None:
    if out != _STDOUT:
        raise UsageError("--xml names its folder itself: leave --out away")
    if str(folder) == _STDOUT:
        raise UsageError("--xml writes a folder, with a file for each site, not standard output: --xml pages/")


def _check_file(form: str, out: str, json: bool) -> None:
    if not out:
        raise UsageError("--out needs the name of a file, or - for standard output")
    if out != _STDOUT:
        return
    if json:
        raise UsageError("--json reports on a file: name one with --out FILE (for pages as JSON: --jsonl alone)")
    if form != "jsonl" and sys.stdout.isatty():
        raise UsageError(f"--{form} is not for reading on a terminal: name a file with --out FILE")


def _write(pages: Iterable[Document], form: str, out: str, force: bool) -> int:
    from levada.adapters.exports.whole_file import CountingOutput, standard_output, whole_file

    opened = standard_output(sys.stdout.buffer) if out == _STDOUT else whole_file(Path(out), force=force)
    with opened as file:
        counting = CountingOutput(file)
        _write_form(pages, form, counting, gzip=out.endswith(".gz"))
        return counting.written


def _write_form(pages: Iterable[Document], form: str, out: CountingOutput, gzip: bool) -> None:
    if form == "jsonl":
        from levada.adapters.exports.jsonl import write_jsonl

        write_jsonl(pages, out)
    elif form == "parquet":
        from levada.adapters.exports.parquet import write_parquet

        write_parquet(pages, out)
    else:
        from levada import __version__
        from levada.adapters.exports.warc import write_warc

        write_warc(pages, out, software=f"levada/{__version__}", gzip=gzip)


def _write_xml(pages: Iterable[Document], folder: Path, force: bool) -> int:
    from levada.adapters.exports.xml import write_xml

    return write_xml(pages, folder, force=force)


def _say(pages: int, written: int, target: str) -> None:
    from levada.cli.printing import plural, size

    where = "" if target == _STDOUT else f" in {target}"
    print(f"{plural(pages, 'page')}, {size(written)}{where}", file=sys.stderr)
