"""E-books (EPUB): the chapters in the order in which they are read, each as its HTML shows it."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from levada.core.reasons import Reason
from levada.core.records import ReadPage
from levada.pages.charset import decode
from levada.pages.documents.gathering import DocumentText, Unreadable
from levada.pages.documents.package import Attributes, Package, Properties, XmlReader, attribute, filled
from levada.pages.html import too_deep, tree_of
from levada.pages.text import whole_text

_CONTAINER = "META-INF/container.xml"
_CHAPTER = frozenset(("application/xhtml+xml", "text/html", "application/html"))
_MAX_NESTING = 5_000
_MAX_CHAPTER = 10_000_000  # bytes


class EpubReader:
    content_types = ("application/epub+zip",)

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        package = Package(body)
        container = _Container()
        container.read(package.pieces(_CONTAINER))
        book, text = _Opf(), DocumentText()
        book.read(package.pieces(container.book))
        locked = _locked_parts(package)
        folder = posixpath.dirname(container.book)
        chapters = [posixpath.normpath(posixpath.join(folder, unquote(each))) for each in book.chapters()]
        if locked.intersection(chapters):
            raise Unreadable(Reason.ENCRYPTED)

        def read_all() -> None:
            for chapter in chapters:
                if chapter in package:
                    _read_chapter(package.read(chapter)[:_MAX_CHAPTER], text)

        left_out = filled(text, read_all)
        return ReadPage(
            title=book.first("title"),
            text=text.text(),
            links=text.links,
            language=book.first("language"),
            author=book.first("creator"),
            published=book.date("date"),
            modified=book.date("modified"),
            left_out=left_out,
        )


def _read_chapter(html: bytes, text: DocumentText) -> None:
    if too_deep(html, _MAX_NESTING):
        raise Unreadable(Reason.NESTING)
    tree = tree_of(decode(html, "application/xhtml+xml").utf8)
    for node in tree.tags("a"):
        if (href := node.attributes.get("href") or "").startswith(("http://", "https://")):
            text.link(href)
    for line in whole_text(tree).decode("utf-8", "replace").split("\n"):
        text.add_line(line)


def _locked_parts(package: Package) -> set[str]:
    """The parts that are encrypted; fonts are, where they may not be copied."""
    if "META-INF/encryption.xml" not in package:
        return set()
    reader = _Encryption()
    reader.read(package.pieces("META-INF/encryption.xml"))
    return reader.parts


class _Container(XmlReader):
    book = ""

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "rootfile":
            self.book = self.book or attribute(attributes, "full-path")


class _Encryption(XmlReader):
    def __init__(self) -> None:
        super().__init__()
        self.parts: set[str] = set()

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "CipherReference":
            self.parts.add(unquote(attribute(attributes, "URI")))


class _Opf(Properties):
    """What the book says of itself, its files, and the order in which they are read."""

    refuses_types = False  # books of the first edition declare one

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, tuple[str, str]] = {}  # by id: address and content type
        self._order: list[str] = []
        self._property = ""

    def chapters(self) -> list[str]:
        files = (self._files.get(id, ("", "")) for id in self._order)
        return [href for href, kind in files if kind in _CHAPTER]

    def start(self, name: str, attributes: Attributes) -> None:
        super().start(name, attributes)
        if name == "item":
            self._files[attributes.get("id", "")] = attributes.get("href", ""), attributes.get("media-type", "")
        elif name == "itemref":
            self._order.append(attributes.get("idref", ""))
        self._property = attributes.get("property", "") if name == "meta" else ""

    def end(self, name: str) -> None:
        super().end("modified" if self._property == "dcterms:modified" else name)
        self._property = ""
