"""Recognizing documents: by their first bytes, by what the server says, and by the name where it says nothing.

The first bytes win: servers send documents as bytes of any kind, or under a wrong type. Readers are imported when
the first document of their kind comes.
"""

from __future__ import annotations

import io
import zipfile
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from levada.core.plugins import GROUPS
from levada.core.records import RawPage

if TYPE_CHECKING:
    from levada.core.protocols import PageReader

PDF, WORD, SPREADSHEET, PRESENTATION, OPENDOCUMENT, EPUB = (
    "pdf",
    "word",
    "spreadsheet",
    "presentation",
    "opendocument",
    "epub",
)
CSV, JSON, XML = "csv", "json", "xml"
_ZIPPED = frozenset((WORD, SPREADSHEET, PRESENTATION, OPENDOCUMENT, EPUB))
_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPENDOCUMENT = "application/vnd.oasis.opendocument."
_BY_MEDIA = {
    "application/pdf": PDF,
    "application/x-pdf": PDF,
    f"{_OFFICE}wordprocessingml.document": WORD,
    f"{_OFFICE}wordprocessingml.template": WORD,
    "application/vnd.ms-word.document.macroenabled.12": WORD,
    f"{_OFFICE}spreadsheetml.sheet": SPREADSHEET,
    f"{_OFFICE}spreadsheetml.template": SPREADSHEET,
    "application/vnd.ms-excel.sheet.macroenabled.12": SPREADSHEET,
    f"{_OFFICE}presentationml.presentation": PRESENTATION,
    f"{_OFFICE}presentationml.slideshow": PRESENTATION,
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": PRESENTATION,
    f"{_OPENDOCUMENT}text": OPENDOCUMENT,
    f"{_OPENDOCUMENT}text-template": OPENDOCUMENT,
    f"{_OPENDOCUMENT}spreadsheet": OPENDOCUMENT,
    f"{_OPENDOCUMENT}presentation": OPENDOCUMENT,
    "application/epub+zip": EPUB,
    "text/csv": CSV,
    "application/csv": CSV,
    "text/comma-separated-values": CSV,
    "text/tab-separated-values": CSV,
    "application/json": JSON,
    "text/json": JSON,
    "application/x-ndjson": JSON,
    "application/jsonl": JSON,
}
_BY_ENDING = {
    "pdf": PDF,
    "docx": WORD,
    "xlsx": SPREADSHEET,
    "pptx": PRESENTATION,
    "odt": OPENDOCUMENT,
    "ods": OPENDOCUMENT,
    "odp": OPENDOCUMENT,
    "epub": EPUB,
    "csv": CSV,
    "tsv": CSV,
    "json": JSON,
    "jsonl": JSON,
    "ndjson": JSON,
}
OPEN_MEDIA = frozenset(
    ("", "application/octet-stream", "binary/octet-stream", "application/zip", "application/download")
)
"""Content types that say nothing."""
_MAIN_PARTS = (
    ("word/document.xml", WORD),
    ("xl/workbook.xml", SPREADSHEET),
    ("ppt/presentation.xml", PRESENTATION),
    ("META-INF/container.xml", EPUB),
    ("content.xml", OPENDOCUMENT),
)
_FIRST_NAME = 30  # bytes before the name of the first part
_LOOK = 1024
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the files of old office programs, and of encrypted new ones
_LOCKED = "EncryptedPackage".encode("utf-16-le")


def media_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def may_be_document(content_type: str, url: str) -> bool:
    """Whether an answer of this content type may be as large as documents are. It is asked before the body comes."""
    media = media_of(content_type)
    return media in _BY_MEDIA or media.endswith("+json") or (media in OPEN_MEDIA and _ending(url) in _BY_ENDING)


def document_kind(page: RawPage) -> str | None:
    """The name of the reader for this page; None if it is no document, or none that can be read."""
    start, media = page.body[:_LOOK], media_of(page.content_type)
    named = _BY_MEDIA.get(media) or (JSON if media.endswith("+json") else None)
    if start.startswith(b"%PDF-") or (b"%PDF-" in start and (named == PDF or media in OPEN_MEDIA)):
        return PDF
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zipped_kind(page.body) or (named if named in _ZIPPED else None)
    if named is None and media in OPEN_MEDIA and _ending(page.url) in (CSV, "tsv", JSON, "jsonl", "ndjson"):
        named = _BY_ENDING[_ending(page.url)]
    if start.startswith(_COMPOUND):
        return named if named in _ZIPPED else WORD if _LOCKED in page.body else None
    return named


def is_locked(body: bytes) -> bool:
    """Whether this is an office file with a password: it is hidden in a file of the old kind."""
    return body.startswith(_COMPOUND) and _LOCKED in body


def _zipped_kind(body: bytes) -> str | None:
    """By the parts that every file of a kind has; of some the first part says the content type."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as file:
            names = set(file.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return _said_kind(body)
    return next((kind for part, kind in _MAIN_PARTS if part in names), None)


def _said_kind(body: bytes) -> str | None:
    """The kind of a broken archive, as far as its beginning says it."""
    if body.startswith(b"mimetypeapplication/epub+zip", _FIRST_NAME):
        return EPUB
    return OPENDOCUMENT if body.startswith(b"mimetype" + _OPENDOCUMENT.encode(), _FIRST_NAME) else None


def _ending(url: str) -> str:
    return urlsplit(url).path.rpartition(".")[2].lower()[:8]


@cache
def reader_of(kind: str) -> PageReader:
    """The built-in reader of this name."""
    module, _, name = GROUPS["levada.readers"].builtins[kind].partition(":")
    reader: PageReader = getattr(import_module(module), name)()
    return reader
