"""Word documents (DOCX): paragraphs, tables, text boxes, footnotes and endnotes, as the last editor left them.

Deleted text, comments, and the lines at the top and bottom of every sheet are no part of the text. Page numbers are
unknown: only the program that prints the document decides where its pages end.
"""

from __future__ import annotations

import re

from levada.core.records import ReadPage
from levada.pages.documents.gathering import DocumentText
from levada.pages.documents.package import (
    Attributes,
    Package,
    Properties,
    Relation,
    XmlReader,
    attribute,
    filled,
)

_MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_SKIPPED = frozenset(("Fallback", "moveFrom", "del", "rt", "docPartObj"))
_HYPERLINK = re.compile(r'HYPERLINK\s+"([^"]+)"')
_NOTES = frozenset(("footnotes", "endnotes"))
_NO_NOTES = frozenset(("separator", "continuationSeparator", "continuationNotice"))


class WordReader:
    content_types = (
        f"{_MAIN}.document",
        f"{_MAIN}.template",
        "application/vnd.ms-word.document.macroenabled.12",
    )

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        package = Package(body)
        main = next(
            (each.target for each in package.relations("").values() if each.kind == "officeDocument"),
            "word/document.xml",
        )
        text, relations = DocumentText(), package.relations(main)
        notes = [each.target for each in relations.values() if each.kind in _NOTES and each.target in package]

        def read_all() -> None:
            for part in (main, *sorted(notes, reverse=True)):  # footnotes before endnotes
                WordPart(text, relations if part == main else package.relations(part)).read(package.pieces(part))

        left_out = filled(text, read_all)
        return office_page(package, text, left_out)


class WordPart(XmlReader):
    """The paragraphs of one part, into a text. Charts and formulas have `t` elements too."""

    def __init__(self, text: DocumentText, relations: dict[str, Relation]) -> None:
        super().__init__()
        self._out = text
        self._relations = relations
        self._skipping = 0  # elements that are open, of which nothing is read
        self._in_text = self._in_field = False
        self._in_run = 0

    def start(self, name: str, attributes: Attributes) -> None:
        if self._skipping or name in _SKIPPED:
            self._skipping += 1
        elif name == "t":
            self._in_text = True
        elif name == "p" or name in ("br", "cr"):
            self._out.end_line()
        elif name == "r":
            self._in_run += 1
        elif name == "tab":
            if self._in_run:
                self._out.add(" ")
        elif name == "noBreakHyphen":
            self._out.add("-")
        elif name == "tr":
            self._out.begin_row()
        elif name == "hyperlink" or name == "hlinkClick":
            self._follow(attribute(attributes, "id"))
        elif name == "instrText":
            self._in_field = True
        elif name in ("footnote", "endnote") and attribute(attributes, "type") in _NO_NOTES:
            self._skipping += 1

    def end(self, name: str) -> None:
        if self._skipping:
            self._skipping -= 1
        elif name == "t":
            self._in_text = False
        elif name == "p":
            self._out.end_line()
        elif name == "r":
            self._in_run -= 1
        elif name == "tc":
            self._out.end_cell()
        elif name == "tr":
            self._out.end_row()
        elif name == "instrText":
            self._in_field = False

    def characters(self, text: str) -> None:
        if self._skipping:
            return
        if self._in_text:
            self._out.add(text)
        elif self._in_field and (found := _HYPERLINK.search(text)):
            self._out.link(found[1])

    def _follow(self, id: str) -> None:
        relation = self._relations.get(id)
        if relation is not None and relation.is_outside:
            self._out.link(relation.target)


def office_page(package: Package, text: DocumentText, left_out: str, pages: int = 0) -> ReadPage:
    """The page of an Office Open XML file, with its properties."""
    place = next(
        (each.target for each in package.relations("").values() if each.kind == "core-properties"),
        "docProps/core.xml",
    )
    properties = Properties.of(package, place)
    return ReadPage(
        title=properties.first("title"),
        text=text.text(),
        links=text.links,
        language=properties.first("language"),
        author=properties.first("creator"),
        published=properties.date("created"),
        modified=properties.date("modified"),
        pages=pages,
        left_out=left_out,
    )
