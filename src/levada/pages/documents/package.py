"""Zipped XML, of which office files and e-books consist: read piece by piece, under limits.

The parts are unpacked as a stream and never to disk. What a part unpacks to is counted while it is read, because the
sizes that an archive states are only a claim. Document types are refused in XML, so there are no entities to expand.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote
from xml.parsers import expat

from levada.core.reasons import Reason
from levada.pages.documents.gathering import DocumentText, TextFull, Unreadable
from levada.pages.feeds import time_of

MAX_UNPACKED = 150_000_000  # bytes of all parts that are read, together
MAX_RATIO, RATIO_FROM = 400, 20_000_000  # a part that unpacks to more than the second may not exceed the first
MAX_PARTS = 20_000
MAX_NESTING = 1_000  # elements
_PIECE = 64 * 1024
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError, IndexError, KeyError)
Attributes = Mapping[str, str]


class Package:
    """The parts of an office file or e-book by name."""

    def __init__(self, body: bytes) -> None:
        self._left = MAX_UNPACKED
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
            parts = self._zip.infolist()
        except _BROKEN as error:
            raise Unreadable(Reason.DAMAGED, str(error)) from None
        if len(parts) > MAX_PARTS:
            raise Unreadable(Reason.UNPACKED_BYTES, f"{len(parts):,} parts")
        self._parts = {part.filename: part for part in parts}

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def names(self) -> Iterable[str]:
        return self._parts

    def pieces(self, name: str) -> Iterator[bytes]:
        """A part as a stream; `Unreadable` if it is not there, broken, encrypted or a bomb."""
        part = self._parts.get(name)
        if part is None:
            raise Unreadable(Reason.DAMAGED, f"it has no {name}")
        if part.flag_bits & 1:
            raise Unreadable(Reason.ENCRYPTED)
        self._refuse_bomb(part, part.file_size)  # as it says itself
        unpacked = 0
        try:
            with self._zip.open(part) as stream:
                while piece := stream.read(_PIECE):
                    unpacked += len(piece)
                    self._left -= len(piece)
                    self._refuse_bomb(part, unpacked)
                    yield piece
        except Unreadable:
            raise
        except RuntimeError:  # how zipfile says that a password is missing
            raise Unreadable(Reason.ENCRYPTED) from None
        except _BROKEN as error:
            raise Unreadable(Reason.DAMAGED, f"{name}: {error}") from None

    def _refuse_bomb(self, part: zipfile.ZipInfo, unpacked: int) -> None:
        is_bomb = unpacked > RATIO_FROM and unpacked > MAX_RATIO * part.compress_size
        if is_bomb or self._left < 0:
            raise Unreadable(Reason.UNPACKED_BYTES, f"{part.filename} unpacks to {unpacked:,} bytes and more")

    def read(self, name: str) -> bytes:
        return b"".join(self.pieces(name))

    def relations(self, name: str) -> dict[str, Relation]:
        """What a part of an Office Open XML file refers to, by id."""
        folder, _, file = name.rpartition("/")
        place = f"{folder}/_rels/{file}.rels" if folder else f"_rels/{file}.rels"
        if place not in self:
            return {}
        reader = _Relations(folder)
        reader.read(self.pieces(place))
        return reader.found


class Relation:
    """Another part, or an address outside of the file."""

    def __init__(self, kind: str, target: str, is_outside: bool) -> None:
        self.kind = kind
        self.target = target
        self.is_outside = is_outside


class XmlReader:
    """Reads XML as it comes: what a subclass calls `start`, `end` and `characters` gets local names."""

    refuses_types = True

    def __init__(self, encoding: str | None = None) -> None:
        self._depth = 0
        self._parser: Any = expat.ParserCreate(encoding, namespace_separator=" ")
        parser = self._parser
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.characters
        parser.EntityDeclHandler = self._refuse_entity
        if self.refuses_types:
            parser.StartDoctypeDeclHandler = self._refuse_type

    def read(self, pieces: Iterable[bytes]) -> None:
        """`Unreadable` if it is no XML, or hostile."""
        try:
            for piece in pieces:
                self._parser.Parse(piece, False)
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise Unreadable(Reason.DAMAGED, str(error)) from None
        finally:
            self._parser = None  # its handlers are methods of ours: nothing is left in a circle

    def start(self, name: str, attributes: Attributes) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def characters(self, text: str) -> None:
        """Text of the innermost element."""

    def _start(self, name: str, attributes: Attributes) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise Unreadable(Reason.NESTING)
        self.start(name.rpartition(" ")[2], attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self.end(name.rpartition(" ")[2])

    def _refuse_entity(self, *_: Any) -> None:
        raise Unreadable(Reason.UNPACKED_BYTES, "it declares entities")

    def _refuse_type(self, *_: Any) -> None:
        raise Unreadable(Reason.DAMAGED, "it declares a document type")


def attribute(attributes: Attributes, name: str) -> str:
    """The value of the attribute with this local name; "" if there is none."""
    found = attributes.get(name)
    if found is not None:
        return found
    ending = f" {name}"
    return next((value for key, value in attributes.items() if key.endswith(ending)), "")


class _Relations(XmlReader):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self.found: dict[str, Relation] = {}

    def start(self, name: str, attributes: Attributes) -> None:
        if name != "Relationship":
            return
        target, is_outside = attributes.get("Target", ""), attributes.get("TargetMode") == "External"
        if not is_outside:
            target = posixpath.normpath(posixpath.join(f"/{self._folder}", unquote(target))).lstrip("/")
        kind = attributes.get("Type", "").rpartition("/")[2]
        self.found[attributes.get("Id", "")] = Relation(kind, target, is_outside)


class Properties(XmlReader):
    """Title, author, dates and language as office files state them: the first value of each element."""

    _WANTED = frozenset(
        ("title", "creator", "initial-creator", "created", "creation-date", "date", "modified", "language")
    )

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[str, str] = {}
        self._text: list[str] = []

    @classmethod
    def of(cls, package: Package, name: str) -> Properties:
        """Those of a part that may be missing; what is wrong with it costs only them."""
        properties = cls()
        if name in package:
            try:
                properties.read(package.pieces(name))
            except Unreadable as error:
                if error.reason is not Reason.DAMAGED:
                    raise
        return properties

    def start(self, name: str, attributes: Attributes) -> None:
        self._text.clear()

    def characters(self, text: str) -> None:
        self._text.append(text[:1_000])

    def end(self, name: str) -> None:
        if name in self._WANTED and (value := " ".join("".join(self._text).split())):
            self._found.setdefault(name, value[:1_000])
        self._text.clear()

    def first(self, *names: str) -> str:
        return next((self._found[name] for name in names if name in self._found), "")

    def date(self, *names: str) -> float | None:
        return time_of(self.first(*names))


def filled(text: DocumentText, read: Callable[[], None]) -> str:
    """Read until the text is full; says what is left out, "" if nothing."""
    try:
        read()
    except TextFull:
        return "the text after its first 5,000,000 characters"
    return ""
