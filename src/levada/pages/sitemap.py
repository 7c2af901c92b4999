"""Which pages does a site say it has? Sitemaps and their indexes (sitemaps.org), packed or plain, XML or text."""

from __future__ import annotations

from levada.pages.charset import decode
from levada.pages.listing import Attributes, Entry, Listing, pieces_of, read_xml, time_of

__all__ = ["parse_sitemap"]

MAX_ENTRIES = 50_000  # both limits are the protocol's own
MAX_BYTES = 50_000_000


def parse_sitemap(
    data: bytes, content_type: str = "", *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
) -> Listing:
    """The addresses that a sitemap names, as written, with what it claims of their last change."""
    start = next(pieces_of(data, max_bytes), b"")
    if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:8].startswith((b"http://", b"https://")):
        return _read_lines(data, content_type, max_entries, max_bytes)
    reader = _SitemapReader(max_entries)
    whole = read_xml(pieces_of(data, max_bytes), content_type, reader.start, reader.end)
    return Listing(tuple(reader.entries), whole)


class _SitemapReader:
    def __init__(self, max_entries: int) -> None:
        self.entries: list[Entry] = []
        self._max_entries = max_entries
        self._loc = self._lastmod = ""

    def start(self, name: str, attributes: Attributes) -> None:
        if name in ("url", "sitemap"):
            self._loc = self._lastmod = ""

    def end(self, name: str, text: str) -> bool:
        # An image or video inside an entry has a loc of its own: the first is the page's.
        if name == "loc":
            self._loc = self._loc or text
        elif name == "lastmod":
            self._lastmod = self._lastmod or text
        elif name in ("url", "sitemap") and self._loc:
            if len(self.entries) >= self._max_entries:
                return False
            self.entries.append(Entry(self._loc, time_of(self._lastmod), name == "sitemap"))
            self._loc = ""
        return True


def _read_lines(data: bytes, content_type: str, max_entries: int, max_bytes: int) -> Listing:
    pieces = list(pieces_of(data, max_bytes))
    whole = bool(pieces) and not pieces[-1]
    lines = decode(b"".join(pieces), content_type).utf8.decode("utf-8", "replace").split()
    hrefs = [line for line in lines if line.startswith(("http://", "https://"))]
    return Listing(tuple(map(Entry, hrefs[:max_entries])), whole and len(hrefs) <= max_entries)
