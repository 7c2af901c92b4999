"""Export of stored pages: which, in what form, and to where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec

from levada.core.errors import BadUrl, LevadaError, NotFound, UsageError
from levada.core.files import ExportContext
from levada.core.plugins import find, is_builtin, load
from levada.core.protocols import Exporter
from levada.core.records import Document
from levada.pages.urls import canonical, site_of
from levada.parser.converting import MarkdownConverter
from levada.store.reading import OpenedCollection

_EXPORTERS = "levada.exporters"
_SUFFIXES = {".jsonl": "jsonl", ".md": "markdown", ".parquet": "parquet", ".warc": "warc"}


class ExportReport(msgspec.Struct, frozen=True):
    """What an export wrote.

    >>> news.export("pages.jsonl", force=True).pages > 0
    True
    """

    format: str
    path: str
    pages: int
    bytes: int


def stored_pages(
    collection: OpenedCollection,
    site: str = "",
    since: float | None = None,
    on_seen: Callable[[int], None] = lambda seen: None,
) -> Iterator[Document]:
    """The stored pages of a host, or changed since a time; `on_seen` is told how many were read."""
    host = _host(site) if site else ""

    def read() -> Iterator[Document]:
        for seen, document in enumerate(collection.store.scan(), 1):
            on_seen(seen)
            of_host = not host or _within(document.site, host)
            if of_host and (since is None or document.fetched_at >= since):
                yield document

    return read()


def as_markdown(collection: OpenedCollection, document: Document) -> str:
    """The main content of a document as Markdown, read in a child with limits."""
    with MarkdownConverter(collection.settings.parse) as converter:
        return converter.markdown(document)


def format_named(path: Path, named: str | None) -> str:
    """The format of an export: as named, or as the suffix of its file says."""
    if named is not None:
        find(_EXPORTERS, named, "format")
        return named
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix not in _SUFFIXES:
        raise UsageError(f"{path.name} does not say its format: end its name in {', '.join(_SUFFIXES)}, or name format")
    return _SUFFIXES[suffix]


def export_pages(
    collection: OpenedCollection,
    form: str,
    path: Path,
    site: str = "",
    since: float | None = None,
    *,
    force: bool = False,
    stdout: BinaryIO | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> ExportReport:
    """Write these pages; a file or folder appears under its name only when it is whole. `stdout` replaces the file.

    An error of a plug-in is reported in one sentence.
    """
    total = collection.store.stats(collection.clock.now()).stored
    pages = stored_pages(collection, site, since, on_seen=lambda seen: on_progress(seen, total))
    options = None if is_builtin(_EXPORTERS, form) else collection.folder.settings().plugins.get(form)
    exporter: Exporter = load(_EXPORTERS, form, options)
    if stdout is not None and not exporter.suffix:
        raise UsageError(f"{form} writes a folder, not standard output: name one with --out DIR")
    first = next(pages, None)
    if first is None:  # before the first byte is written
        narrowed = " that was asked for" if site or since is not None else ""
        raise NotFound(f"no page{narrowed} is stored in {collection.folder.path}")
    taken = 0

    def counted() -> Iterator[Document]:
        nonlocal taken
        for page in chain([first], pages):
            taken += 1
            yield page

    stream = counted()
    try:
        with MarkdownConverter(collection.settings.parse) as converter:  # starts its child when it is first asked
            context = ExportContext(force=force, stdout=stdout, markdown=converter.markdown)
            written = exporter.export(stream, path, context)
    except (LevadaError, BrokenPipeError):
        raise
    except Exception as error:
        if is_builtin(_EXPORTERS, form):
            raise
        raise LevadaError(f'--format: the plug-in "{form}" failed ({type(error).__name__}: {error})') from error
    if not isinstance(written, int) or next(stream, None) is not None:
        raise LevadaError(f'--format: the plug-in "{form}" did not write all pages, or did not say how many bytes')
    return ExportReport(form, str(path), taken, written)


def _host(typed: str) -> str:
    try:
        return site_of(canonical(typed if "://" in typed else f"https://{typed}"))
    except BadUrl as error:
        said = str(error).replace("'https://", "'")  # which nobody has typed
        raise UsageError(f"--site is no host, such as example.org or example.org:8080: {said}") from None


def _within(site: str, wanted: str) -> bool:
    """Whether it is this host or one below it, as `site:` in a search; a port must be the same."""
    host = site if site.endswith("]") else site.rpartition(":")[0] or site
    return wanted in (site, host) or host.endswith(f".{wanted}")
