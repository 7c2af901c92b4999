"""PDF by pdfium, the library of Chromium: text by page, links, and what the document says of itself.

pdfium needs no other package, follows no reference outside of the file and runs no script. A word that is broken at
the end of a line is put together again. Pages that are only pictures have no text; how many, is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ctypes import POINTER, byref, c_int, c_ushort, cast, create_string_buffer
from typing import Any

from levada.core.reasons import Reason
from levada.core.records import ReadPage
from levada.pages.documents.gathering import DocumentText, TextFull, Unreadable
from levada.pages.feeds import time_of

MAX_PAGES = 2_000
MAX_CLAIMED = 100_000  # pages: a tree that says it has more is endless
_BROKEN_IN_A_ROW = 50  # pages that cannot be loaded
_MAX_PAGE_TEXT = 1_000_000  # characters
_COLUMN = 5  # lines of one character in a row that are vertical writing
_MAX_ADDRESS = 4_000  # bytes
_MAX_PAGE_LINKS = 500
_HYPHEN = re.compile("[\ufffe\x02]\r?\n?")  # how pdfium marks a word that goes on in the next line
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-])(\d\d)'?(\d\d)?|Z)?")


class PdfReader:
    """`MissingExtra` is `Unreadable` here: the page waits until pypdfium2 is installed."""

    content_types = ("application/pdf", "application/x-pdf")

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        try:
            import pypdfium2
            from pypdfium2 import raw
        except ImportError:
            raise Unreadable(Reason.NEEDS_EXTRA, "pip install 'levada[documents]'") from None
        try:
            document = pypdfium2.PdfDocument(body)
        except pypdfium2.PdfiumError as error:
            locked = getattr(error, "err_code", None) in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
            raise Unreadable(Reason.ENCRYPTED if locked else Reason.DAMAGED, str(error)) from None
        try:
            return _read(document, raw)
        finally:
            document.close()


def _read(document: Any, raw: Any) -> ReadPage:
    count = len(document)
    if count > MAX_CLAIMED:
        raise Unreadable(Reason.UNPACKED_BYTES, f"it says that it has {count:,} pages")
    text, without_text, left_out = DocumentText(), 0, ""
    broken = in_a_row = 0
    for number in range(min(count, MAX_PAGES)):
        if number:
            text.end_page()
        page = raw.FPDF_LoadPage(document, number)
        if not page:
            broken, in_a_row = broken + 1, in_a_row + 1
            if in_a_row == _BROKEN_IN_A_ROW:
                break
            continue
        in_a_row = 0
        try:
            without_text += not _read_page(document, page, raw, text)
        except TextFull:
            left_out = f"the text from page {number + 1} on"
            break
        finally:
            raw.FPDF_ClosePage(page)
    if broken == min(count, MAX_PAGES) or in_a_row == _BROKEN_IN_A_ROW:
        raise Unreadable(Reason.DAMAGED, "its pages cannot be read")
    if not left_out and count > MAX_PAGES:
        left_out = f"{count - MAX_PAGES:,} of {count:,} pages"
    elif not left_out and broken:
        left_out = f"{broken:,} of {count:,} pages, which are damaged"
    elif not left_out and without_text:
        left_out = f"{without_text:,} of {count:,} pages, which have no text"
    said = document.get_metadata_dict()
    return ReadPage(
        title=said.get("Title", ""),
        text=text.text(),
        links=text.links,
        language=_language(document, raw),
        author=said.get("Author", ""),
        published=date_of(said.get("CreationDate", "")),
        modified=date_of(said.get("ModDate", "")),
        pages=count,
        left_out=left_out,
    )


def _read_page(document: Any, page: Any, raw: Any, text: DocumentText) -> bool:
    """Whether the page has a text."""
    characters = raw.FPDFText_LoadPage(page)
    if not characters:
        return False
    try:
        count = min(raw.FPDFText_CountChars(characters), _MAX_PAGE_TEXT)
        shown = _text_of(characters, count, raw)
        for line in _upright(_HYPHEN.sub("", shown).splitlines()):
            text.add_line(line)
        addresses = list(_addresses(document, page, raw))
        for address in addresses:
            text.link(address)
        if not addresses:  # in the text, a long one is cut at the end of the line
            text.links_in(shown)
        return bool(shown.strip())
    finally:
        raw.FPDFText_ClosePage(characters)


def _upright(lines: list[str]) -> Iterator[str]:
    """Lines of one character each, as pdfium gives vertical writing, put together."""
    run: list[str] = []
    for line in lines:
        if len(line) == 1 and not line.isascii():
            run.append(line)
            continue
        yield from ["".join(run)] if len(run) >= _COLUMN else run
        run = []
        yield line
    yield from ["".join(run)] if len(run) >= _COLUMN else run


def _text_of(characters: Any, count: int, raw: Any) -> str:
    if count <= 0:
        return ""
    room = create_string_buffer(2 * (count + 1))
    got = raw.FPDFText_GetText(characters, 0, count, cast(room, POINTER(c_ushort)))
    return room.raw[: 2 * max(0, got - 1)].decode("utf-16-le", "replace")


def _addresses(document: Any, page: Any, raw: Any) -> Iterator[str]:
    """Where the links of a page lead, if outside of the document."""
    place, link = c_int(0), raw.FPDF_LINK()
    room = create_string_buffer(_MAX_ADDRESS)
    for _ in range(_MAX_PAGE_LINKS):
        if not raw.FPDFLink_Enumerate(page, byref(place), byref(link)):
            return
        action = raw.FPDFLink_GetAction(link)
        if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
            continue
        size = raw.FPDFAction_GetURIPath(document, action, room, _MAX_ADDRESS)
        if 1 < size <= _MAX_ADDRESS:
            yield room.raw[: size - 1].decode("utf-8", "replace").strip()


def _language(document: Any, raw: Any) -> str:
    """As the document declares it."""
    room = create_string_buffer(64)
    size = raw.FPDFCatalog_GetLanguage(document, cast(room, POINTER(c_ushort)), len(room))
    return room.raw[: size - 2].decode("utf-16-le", "replace") if 2 < size <= len(room) else ""


def date_of(text: str) -> float | None:
    """Epoch seconds of a date of a PDF, such as D:20260131120000+01'00'."""
    found = _DATE.match(text.strip())
    if found is None or text.strip()[4:5] == "-":
        return time_of(text)
    year, month, day, hour, minute, second, sign, hours, minutes = (each or "" for each in found.groups())
    zone = f"{sign}{hours}:{minutes or '00'}" if sign else "+00:00"
    clock = f"{hour or '00'}:{minute or '00'}:{second or '00'}"
    return time_of(f"{year}-{month or '01'}-{day or '01'}T{clock}{zone}")
