"""Sitemaps and feeds: XML lists of URLs and dates, read in bounded memory.

Two common mistakes are repaired: text before the XML declaration, such as the blank line of a PHP file, and
unescaped ampersands in URLs. Entity declarations are refused before they take effect, so nothing is expanded or
fetched. A list that breaks off gives the entries up to there, and `Listing.whole` is False.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple
from xml.parsers import expat

from levada.pages.charset import declared, decode

# The groups are possessive: with backtracking, hostile input could make this slow.
_PREAMBLE = re.compile(rb"(?:[^<]++|(?><!--.*?-->))*+(?=<\?xml\s)|(?:\s|\xef\xbb\xbf)++(?=<)", re.DOTALL)
_MARK = re.compile(r"<!\[CDATA\[|\]\]>|&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_TORN_MARK = re.compile(r"(?:&[#A-Za-z0-9]{0,8}|<[!\[A-Z]{0,8}|\]{1,2})\Z")
_TORN_LENGTH = 9


def without_preamble(start: bytes) -> bytes:
    """The beginning of a list, without the text before its declaration or, if it has none, white space."""
    found = _PREAMBLE.match(start)
    return start[found.end() :] if found else start


class Ampersands:
    """Escapes, piece by piece, the ampersands that begin no reference and are not in CDATA."""

    def __init__(self) -> None:
        self._held = ""  # a mark that may continue in the next piece
        self._in_cdata = False

    def __call__(self, text: str, final: bool) -> str:
        text = self._held + text
        torn = None if final else _TORN_MARK.search(text, max(0, len(text) - _TORN_LENGTH))
        end = torn.start() if torn else len(text)
        self._held = text[end:]
        return _MARK.sub(self._mended, text[:end])

    def _mended(self, found: re.Match[str]) -> str:
        mark = found[0]
        if mark == "&":
            return "&" if self._in_cdata else "&amp;"
        self._in_cdata = mark != "]]>"
        return mark


PIECE = 65_536
MAX_TEXT = 4_096  # characters of one element that are kept
MAX_DEPTH = 64
EARLIEST, LATEST = 631_152_000.0, 7_258_118_400.0  # 1990 and 2200: the possible dates of a page
Attributes = dict[str, str]


class ListEntry(NamedTuple):
    href: str
    lastmod: float | None = None
    is_list: bool = False  # another list, not a page


class Listing(NamedTuple):
    entries: tuple[ListEntry, ...]
    whole: bool  # False: broken, refused or cut off at a limit


class _StopReading(Exception):
    """Raised in a callback to stop the parser."""


def pieces_of(data: bytes, max_bytes: int) -> Iterator[bytes]:
    """`data` in pieces, unpacked if it is gzip; a final `b""` says that it is complete."""
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


def time_of(text: str) -> float | None:
    """Epoch seconds of a W3C (ISO 8601) or mail (RFC 822) date; None if it is not plausible. No zone means UTC."""
    text = text.strip()[:64]
    padded = text + {4: "-01-01", 7: "-01"}.get(len(text), "")
    for read in (datetime.fromisoformat, _mail_date):
        try:
            moment = read(padded)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return seconds if EARLIEST <= seconds <= LATEST else None
    return None


def _mail_date(text: str) -> datetime:
    from email.utils import parsedate_to_datetime  # here: few parser children ever need it

    return parsedate_to_datetime(text)


class _ListReader:
    """An expat parser with limits, which collects the entries of a list."""

    def __init__(self, max_entries: int) -> None:
        self._entries: list[ListEntry] = []
        self._max_entries = max_entries
        self._text: list[str] = []
        self._length = self._depth = 0
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        self._parser = parser

    def read(self, data: bytes, content_type: str, max_bytes: int) -> Listing:
        try:
            whole = self._read_to_end(pieces_of(data, max_bytes), content_type)
        except (expat.ExpatError, _StopReading):
            whole = False
        return Listing(tuple(self._entries), whole)

    def start(self, name: str, attributes: Attributes) -> None:
        """An element begins; `name` is its local name."""
        raise NotImplementedError

    def end(self, name: str, text: str) -> None:
        """An element ends that has this text."""
        raise NotImplementedError

    def keep(self, entry: ListEntry) -> None:
        if len(self._entries) >= self._max_entries:
            raise _StopReading
        self._entries.append(entry)

    def _read_to_end(self, pieces: Iterator[bytes], content_type: str) -> bool:
        """Whether the list is complete."""
        decoder: codecs.IncrementalDecoder | None = None
        escaped = Ampersands()
        for piece in pieces:
            is_last = not piece
            if decoder is None:
                piece = without_preamble(piece)
                decoder = _decoder_of(piece, content_type)
            text = escaped(decoder.decode(piece, is_last), is_last)
            self._parser.Parse(text.encode("utf-8", "replace"), is_last)
            if is_last:
                return True
        return False

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
        self.start(name.rpartition(":")[2].lower(), attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        text = "".join(self._text).strip()
        self._text.clear()
        self.end(name.rpartition(":")[2].lower(), text)

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


MAX_ENTRIES, MAX_BYTES = 50_000, 50_000_000  # the limits of the sitemap protocol
_ITEMS = frozenset(("item", "entry"))
_DATES = frozenset(("pubdate", "updated", "published", "date", "modified", "issued"))


def parse_feed(
    data: bytes, content_type: str = "", *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
) -> Listing:
    """The URLs of a feed's entries, as written, each with its latest date."""
    return _FeedReader(max_entries).read(data, content_type, max_bytes)


class _FeedReader(_ListReader):
    _inside = _permalink = False
    _link = _spare = ""
    _latest = 0.0

    def start(self, name: str, attributes: Attributes) -> None:
        if name in _ITEMS:
            self._inside, self._link, self._latest = True, "", 0.0
            self._spare = attributes.get("rdf:about", "")
        elif name == "link" and attributes.get("rel", "alternate") == "alternate":
            self._link = self._link or attributes.get("href", "")
        elif name == "guid":
            self._permalink = attributes.get("isPermaLink", "true").lower() == "true"

    def end(self, name: str, text: str) -> None:
        if not self._inside:
            return
        if name == "link":
            self._link = self._link or text
        elif name == "guid" and self._permalink and text.startswith(("http://", "https://")):
            self._spare = text
        elif name in _DATES:
            self._latest = max(self._latest, time_of(text) or 0.0)
        elif name in _ITEMS:
            self._inside = False
            if href := self._link or self._spare:
                self.keep(ListEntry(href, self._latest or None))


def parse_sitemap(
    data: bytes, content_type: str = "", *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
) -> Listing:
    """The URLs of a sitemap, as written, with the dates that it states."""
    start = next(pieces_of(data, max_bytes), b"")
    if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:8].startswith((b"http://", b"https://")):
        return _read_lines(data, content_type, max_entries, max_bytes)
    return _SitemapReader(max_entries).read(data, content_type, max_bytes)


class _SitemapReader(_ListReader):
    _loc = _lastmod = ""

    def start(self, name: str, attributes: Attributes) -> None:
        if name in ("url", "sitemap"):
            self._loc = self._lastmod = ""

    def end(self, name: str, text: str) -> None:
        # An image or video in an entry has its own loc: the first is the page's.
        if name == "loc":
            self._loc = self._loc or text
        elif name == "lastmod":
            self._lastmod = self._lastmod or text
        elif name in ("url", "sitemap") and self._loc:
            self.keep(ListEntry(self._loc, time_of(self._lastmod), name == "sitemap"))
            self._loc = ""


def _read_lines(data: bytes, content_type: str, max_entries: int, max_bytes: int) -> Listing:
    pieces = list(pieces_of(data, max_bytes))
    whole = bool(pieces) and not pieces[-1]
    lines = decode(b"".join(pieces), content_type).utf8.decode("utf-8", "replace").split()
    hrefs = [line for line in lines if line.startswith(("http://", "https://"))]
    return Listing(tuple(map(ListEntry, hrefs[:max_entries])), whole and len(hrefs) <= max_entries)
