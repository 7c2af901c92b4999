"""XML export in the paper's form: one file per site.

Pages come in the order of discovery, sites mixed, so each entry is appended to the file of its site. A bounded
number of files is open at a time, and the closing tags come at the end. The export is written to a draft folder,
which takes its place when it is complete.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import escape, quoteattr

from levada.core.files import ExportContext, export_failure
from levada.core.records import Document
from levada.export.folders import readable_name, whole_folder

OPEN_FILES = 64
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<site name='
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class XmlExporter:
    """A folder with one XML file per site."""

    suffix = ""

    def export(self, documents: Iterable[Document], out: Path, context: ExportContext) -> int:
        try:
            with whole_folder(out, _is_ours, force=context.force) as draft:
                with closing(_SiteFiles(draft)) as files:
                    for document in documents:
                        files.append(document)
                return _finish(draft)
        except OSError as error:
            raise export_failure(error, out) from error


def file_name(site: str) -> str:
    """A file name that stays in the folder and that no other site has."""
    return f"{readable_name(site)}.xml"


class _SiteFiles:
    """The files of the sites; those used last are open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, BinaryIO] = OrderedDict()

    def append(self, document: Document) -> None:
        self._file(document.site).write(_entry(document))

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _file(self, site: str) -> BinaryIO:
        if site in self._open:
            self._open.move_to_end(site)
            return self._open[site]
        while len(self._open) >= OPEN_FILES:
            self._open.popitem(last=False)[1].close()
        file = (self._folder / file_name(site)).open("ab")
        self._open[site] = file
        if file.tell() == 0:
            file.write(f"{_HEAD}{quoteattr(_valid(site))}>\n".encode())
        return file


def _entry(document: Document) -> bytes:
    return (
        f"<entry><id>{document.page_id}</id><url>{_text(document.url)}</url>"
        f"<title>{_text(document.title)}</title>\n<content>{_text(document.text)}</content></entry>\n"
    ).encode()


def _text(text: str) -> str:
    return escape(_valid(text), {"\r": "&#13;"})


def _valid(text: str) -> str:
    return _NOT_XML.sub("", text.replace("\f", "\n"))  # between the pages of a document


def _finish(draft: Path) -> int:
    """Close the root element of every file; returns the number of bytes."""
    written = 0
    with os.scandir(draft) as entries:
        for entry in entries:
            with open(entry.path, "ab") as file:
                file.write(b"</site>\n")
                file.flush()
                os.fsync(file.fileno())
                written += file.tell()
    return written


def _is_ours(path: Path) -> bool:
    if path.suffix != ".xml" or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_HEAD)) == _HEAD.encode()
