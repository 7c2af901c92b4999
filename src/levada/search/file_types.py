"""The type of a page's file, as `type:` finds it: html, pdf, docx, text and so on.

It is what the server said, or the ending of the address where the server said nothing. A page that neither tells of is
read as HTML, and is called so.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from levada.core.records import Document
from levada.pages.documents.recognition import OPEN_MEDIA, media_of

_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPENDOCUMENT = "application/vnd.oasis.opendocument"
_BY_MEDIA = {
    "application/xhtml+xml": "html",
    "text/html": "html",
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    "application/epub+zip": "epub",
    f"{_OPENDOCUMENT}.text": "odt",
    f"{_OPENDOCUMENT}.text-template": "odt",
    f"{_OPENDOCUMENT}.spreadsheet": "ods",
    f"{_OPENDOCUMENT}.presentation": "odp",
    "application/csv": "csv",
    "text/csv": "csv",
    "text/comma-separated-values": "csv",
    "text/tab-separated-values": "csv",
    "text/json": "json",
    "application/json": "json",
    "application/x-ndjson": "json",
    "application/jsonl": "json",
    "text/xml": "xml",
    "application/xml": "xml",
}
_BY_START = (
    (f"{_OFFICE}.wordprocessingml.", "docx"),
    ("application/vnd.ms-word.", "docx"),
    (f"{_OFFICE}.spreadsheetml.", "xlsx"),
    ("application/vnd.ms-excel.", "xlsx"),
    (f"{_OFFICE}.presentationml.", "pptx"),
    ("application/vnd.ms-powerpoint.", "pptx"),
    ("text/", "text"),
)
_BY_ENDING = {
    **{each: each for each in ("pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp", "epub", "csv", "json", "xml")},
    "tsv": "csv",
    "jsonl": "json",
    "ndjson": "json",
    "txt": "text",
    "md": "text",
}


def file_type(document: Document) -> str:
    """The type of a document's file.

    >>> file_type(news.page(start))
    'html'
    """
    said = next((value for name, value in document.headers if name.lower() == "content-type"), "")
    media = media_of(said)
    if media in OPEN_MEDIA:
        return _BY_ENDING.get(urlsplit(document.url).path.rpartition(".")[2].lower(), "html")
    return _by_media(media)


@lru_cache(maxsize=1 << 8)
def _by_media(media: str) -> str:
    if known := _BY_MEDIA.get(media):
        return known
    if found := next((name for start, name in _BY_START if media.startswith(start)), ""):
        return found
    return "json" if media.endswith("+json") else "xml" if media.endswith("+xml") else "html"
