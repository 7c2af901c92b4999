"""Export of stored pages: which, in what form, and to where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from levada.core.errors import BadUrl, LevadaError, NotFound, UsageError
from levada.core.files import ExportContext
from levada.core.plugins import find, is_builtin, load
from levada.core.protocols import Exporter
from levada.core.records import Document
from levada.pages.urls import canonical, site_of
from levada.store.reading import OpenedCollection

_EXPORTERS = "levada.exporters"
_SUFFIXES = {".jsonl": "jsonl", ".parquet": "parquet", ".warc": "warc"}


class ExportReport(msgspec.Struct, frozen=True):
    """What an export wrote.

    >>> news.export("pages.jsonl", force=True).pages > 0
    True
    """

    format: str
    path: str
    pages: int
    bytes: int


class PageSelection:
    """The stored pages to export, counted as they are taken: those of a host, or changed since a time."""

    def __init__(
        self,
        collection: OpenedCollection,
        site: str = "",
        since: float | None = None,
        on_seen: Callable[[int], None] = lambda seen: None,
    ) -> None:
        self._store = collection.store
        self._folder = collection.folder.path
        self._site = _host(site) if site else ""
        self._since = since
        self._on_seen = on_seen
        self.seen = 0
        self.taken = 0

    def __iter__(self) -> Iterator[Document]:
        for document in self._store.scan():
            self.seen += 1
            self._on_seen(self.seen)
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
    pages: PageSelection,
    form: str,
    path: Path,
    *,
    force: bool = False,
    stdout: BinaryIO | None = None,
    options: Mapping[str, Any] | None = None,
) -> ExportReport:
    """Write these pages; a file or folder appears under its name only when it is whole. `stdout` replaces the file.

    An error of a plug-in is reported in one sentence. `options` are its `[plugins.NAME]` settings.
    """
    exporter: Exporter = load(_EXPORTERS, form, None if is_builtin(_EXPORTERS, form) else options)
    if stdout is not None and not exporter.suffix:
        raise UsageError(f"{form} writes a folder, not standard output: name one with --out DIR")
    stream = pages.checked()
    try:
        written = exporter.export(stream, path, ExportContext(force=force, stdout=stdout))
    except (LevadaError, BrokenPipeError):
        raise
    except Exception as error:
        if is_builtin(_EXPORTERS, form):
            raise
        raise LevadaError(f'--format: the plug-in "{form}" failed ({type(error).__name__}: {error})') from error
    if not isinstance(written, int) or next(stream, None) is not None:
        raise LevadaError(f'--format: the plug-in "{form}" did not write all pages, or did not say how many bytes')
    return ExportReport(form, str(path), pages.taken, written)


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
