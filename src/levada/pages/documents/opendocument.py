"""OpenDocument files (ODT, ODS, ODP): paragraphs, tables, notes; each slide of a presentation is a page.

Deleted text that an editor kept, comments, and the lines at the top and bottom of every sheet are no part of the
text.
"""

from __future__ import annotations

from levada.core.reasons import Reason
from levada.core.records import ReadPage
from levada.pages.documents.gathering import DocumentText, Unreadable
from levada.pages.documents.package import Attributes, Package, Properties, XmlReader, attribute, filled

_MEDIA = "application/vnd.oasis.opendocument"
_SKIPPED_ELEMENTS = """
    tracked-changes annotation note-citation sequence-decls forms styles automatic-styles master-styles scripts
    font-face-decls settings ruby-text event-listeners title desc
"""
_SKIPPED = frozenset(_SKIPPED_ELEMENTS.split())
_PARAGRAPHS = frozenset(("p", "h"))


class OpenDocumentReader:
    content_types = (f"{_MEDIA}.text", f"{_MEDIA}.spreadsheet", f"{_MEDIA}.presentation", f"{_MEDIA}.text-template")

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        package = Package(body)
        manifest = _Manifest()
        if "META-INF/manifest.xml" in package:
            manifest.read(package.pieces("META-INF/manifest.xml"))
        if manifest.is_encrypted:
            raise Unreadable(Reason.ENCRYPTED)
        text = DocumentText()
        content = _Content(text)
        left_out = filled(text, lambda: content.read(package.pieces("content.xml")))
        properties = Properties.of(package, "meta.xml")
        return ReadPage(
            title=properties.first("title"),
            text=text.text(),
            links=text.links,
            language=properties.first("language"),
            author=properties.first("initial-creator", "creator"),
            published=properties.date("creation-date"),
            modified=properties.date("date"),
            pages=content.slides,
            left_out=left_out,
        )


class _Manifest(XmlReader):
    refuses_types = False  # files of old programs declare one
    is_encrypted = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "encryption-data":
            self.is_encrypted = True


class _Content(XmlReader):
    def __init__(self, text: DocumentText) -> None:
        super().__init__()
        self._out = text
        self._skipping = 0
        self._paragraphs = 0  # that are open: a note stands within one
        self.slides = 0

    def start(self, name: str, attributes: Attributes) -> None:
        if self._skipping or name in _SKIPPED:
            self._skipping += 1
        elif name in _PARAGRAPHS:
            self._out.end_line()
            self._paragraphs += 1
        elif name in ("tab", "s"):
            self._out.add(" ")
        elif name == "line-break":
            self._out.end_line()
        elif name == "table-row":
            self._out.begin_row()
        elif name == "table":
            if not self._paragraphs and (title := attribute(attributes, "name")) and self._is_sheet:
                self._out.add_line(title)
        elif name == "page":
            if self.slides:
                self._out.end_page()
            self.slides += 1
        elif name == "spreadsheet":
            self._is_sheet = True
        elif name == "a":
            self._out.link(attribute(attributes, "href"))

    _is_sheet = False

    def end(self, name: str) -> None:
        if self._skipping:
            self._skipping -= 1
        elif name in _PARAGRAPHS:
            self._paragraphs -= 1
            self._out.end_line()
        elif name == "table-cell":
            self._out.end_cell()
        elif name == "table-row":
            self._out.end_row()

    def characters(self, text: str) -> None:
        if self._paragraphs and not self._skipping:
            self._out.add(text)
