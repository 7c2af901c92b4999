"""Which addresses does an XML list name? Read piece by piece, never more than asked for.

Declarations are refused before they can take effect, so there is nothing to expand and nothing to fetch. A list
that breaks off gives what was read until there, and says so.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple
from xml.parsers import expat

from levada.pages.charset import declared
from levada.pages.mending import Ampersands, without_preamble

__all__ = ["Entry", "Listing", "pieces_of", "read_xml", "time_of"]

PIECE = 65_536
MAX_TEXT = 4_096  # characters of one element that are kept
MAX_DEPTH = 64
EARLIEST, LATEST = 631_152_000.0, 7_258_118_400.0  # 1990 and 2200: what lies outside is no date of a page

Attributes = dict[str, str]


class Entry(NamedTuple):
    href: str
    lastmod: float | None = None
    is_list: bool = False  # another list, not a page


class Listing(NamedTuple):
    entries: tuple[Entry, ...]
    whole: bool  # False: broken, refused or cut off at a limit


class _StopReading(Exception):
    """Raised inside the parser's callbacks to leave it."""


def pieces_of(data: bytes, max_bytes: int) -> Iterator[bytes]:
    """`data` in pieces, unpacked if it is gzip; ends with `b""` only if all of it was given out."""
    if not data.startswith(b"\x1f\x8b"):
        kept = data[:max_bytes]
        yield from (kept[start : start + PIECE] for start in range(0, len(kept), PIECE))
        if len(data) <= max_bytes:
            yield b""
        return
    yield from _unpack(data, max_bytes)


def _unpack(data: bytes, max_bytes: int) -> Iterator[bytes]:
    unpacker, given = zlib.decompressobj(wbits=31), 0
    try:
        for start in range(0, len(data), PIECE):
            packed = data[start : start + PIECE]
            while packed and not unpacker.eof:
                piece = unpacker.decompress(packed, PIECE)
                packed = unpacker.unconsumed_tail
                given += len(piece)
                if given > max_bytes:
                    return
                if piece:
                    yield piece
    except zlib.error:
        return
    if unpacker.eof:
        yield b""


def read_xml(
    pieces: Iterator[bytes],
    content_type: str,
    on_start: Callable[[str, Attributes], None],
    on_end: Callable[[str, str], bool],
) -> bool:
    """Hand out each element's local name, and at its end its text, until `on_end` says False. True: read whole."""
    reader = _Reader(on_start, on_end)
    decoder: codecs.IncrementalDecoder | None = None
    escaped = Ampersands()
    try:
        for piece in pieces:
            is_last = not piece
            if decoder is None:
                piece = without_preamble(piece)
                decoder = _decoder_of(piece, content_type)
            reader.feed(escaped(decoder.decode(piece, is_last), is_last), is_last)
            if is_last:
                return True
    except (expat.ExpatError, _StopReading):
        return False
    return False


def time_of(text: str) -> float | None:
    """Epoch seconds of a W3C (ISO 8601) or mail (RFC 822) date; None if it is no sane one. No zone means UTC."""
    text = text.strip()[:64]
    padded = text + {4: "-01-01", 7: "-01"}.get(len(text), "")
    moment = None
    for read in (datetime.fromisoformat, _mail_date):
        try:
            moment = read(padded)
            break
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    if moment is None:
        return None
    try:
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        return None
    return seconds if EARLIEST <= seconds <= LATEST else None


def _mail_date(text: str) -> datetime:
    from email.utils import parsedate_to_datetime  # here: few children ever meet such a date

    return parsedate_to_datetime(text)


class _Reader:
    """One expat parser with the callbacks that bound it."""

    def __init__(self, on_start: Callable[[str, Attributes], None], on_end: Callable[[str, str], bool]) -> None:
        self._on_start = on_start
        self._on_end = on_end
        self._text: list[str] = []
        self._length = 0
        self._depth = 0
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        self._parser = parser

    def feed(self, text: str, final: bool) -> None:
        self._parser.Parse(text.encode("utf-8", "replace"), final)

    def _doctype(self, name: str, system: str | None, public: str | None, has_internal_subset: bool) -> None:
        if has_internal_subset:
            raise _StopReading

    def _refuse(self, *declaration: object) -> None:
        raise _StopReading

    def _start(self, name: str, attributes: Attributes) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _StopReading
        self._text.clear()
        self._length = 0
        self._on_start(name.rpartition(":")[2].lower(), attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        text = "".join(self._text).strip()
        self._text.clear()
        if not self._on_end(name.rpartition(":")[2].lower(), text):
            raise _StopReading

    def _characters(self, text: str) -> None:
        if self._length < MAX_TEXT:
            self._text.append(text[:MAX_TEXT])
            self._length += len(text)


def _decoder_of(start: bytes, content_type: str) -> codecs.IncrementalDecoder:
    codec = declared(start, content_type) or "utf-8"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        codec = "utf-16"
    elif codec == "utf-8":
        codec = "utf-8-sig"
    return codecs.getincrementaldecoder(codec)("replace")
