"""Markdown export: the main content of each page, below its address, title and times as YAML."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from levada.core.files import ExportContext, export_failure
from levada.core.records import Document
from levada.export.folders import UNSAFE, readable_name, short_digest, whole_folder
from levada.export.rows import ExportRow, row_of
from levada.store.rules import plain_text

_HEAD = "---\nurl: "
_SUFFIX = ".md"


class MarkdownExporter:
    """One file with all pages, or a folder with one file per page if the name does not end in .md."""

    suffix = _SUFFIX

    def export(self, documents: Iterable[Document], out: Path, context: ExportContext) -> int:
        if context.is_piped or out.suffix == _SUFFIX:
            with context.open(out) as file:
                for document in documents:
                    file.write(_page(document, context) + b"\n")
                return file.written
        try:
            with whole_folder(out, _is_ours, force=context.force) as draft:
                return sum(_write(document, draft, context) for document in documents)
        except OSError as error:
            raise export_failure(error, out) from error


class MarkdownRow(ExportRow, frozen=True, kw_only=True):
    """A stored page as a line of JSON, with its main content as Markdown."""

    markdown: str


class MarkdownJsonExporter:
    """One JSON object per line and page, with the main content as Markdown in a field of its own."""

    suffix = ".jsonl"

    def export(self, documents: Iterable[Document], out: Path, context: ExportContext) -> int:
        encoder = msgspec.json.Encoder()
        with context.open(out) as file:
            for document in documents:
                fields = msgspec.structs.asdict(row_of(document))
                row = MarkdownRow(**fields, markdown=plain_text(context.markdown(document)))
                file.write(encoder.encode(row) + b"\n")
            return file.written


def file_name(url: str) -> str:
    """The name of a page's file in the folder of its site; no other page of the site has it."""
    path = url.partition("://")[2].partition("/")[2]
    if url.startswith("https://") and path != "index" and (not path or readable_name(path) == path):
        return f"{path or 'index'}{_SUFFIX}"
    words = UNSAFE.sub("_", path.replace("/", "-")[:60]).strip("-_.") or "index"
    return f"{words}-{short_digest(url)}{_SUFFIX}"


def _write(document: Document, folder: Path, context: ExportContext) -> int:
    of_site = folder / readable_name(document.site)
    of_site.mkdir(exist_ok=True)
    with (of_site / file_name(document.url)).open("wb") as file:
        written = file.write(_page(document, context))
        file.flush()
        os.fsync(file.fileno())
    return written


def _page(document: Document, context: ExportContext) -> bytes:
    row = row_of(document)
    facts = {"url": row.url, "title": row.title, "language": row.language, "version": row.version}
    times = {"fetched_at": row.fetched_at, "checked_at": row.checked_at}
    # A value of JSON is one of YAML too.
    head = "".join(f"{name}: {msgspec.json.encode(value).decode()}\n" for name, value in (facts | times).items())
    return f"---\n{head}---\n\n{context.markdown(document)}\n".encode("utf-8", "replace")


def _is_ours(path: Path) -> bool:
    """Whether it is the folder of a site with pages, and nothing else."""
    if path.is_symlink() or not path.is_dir():
        return False
    return all(map(_is_page, path.iterdir()))


def _is_page(path: Path) -> bool:
    if path.suffix != _SUFFIX or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_HEAD)) == _HEAD.encode()
