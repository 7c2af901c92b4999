"""What is new on a site? RSS 2.0, Atom (RFC 4287) and RSS 1.0 (RDF), as sources of links and dates."""

from __future__ import annotations

from levada.pages.listing import Attributes, Entry, Listing, pieces_of, read_xml, time_of

__all__ = ["parse_feed"]

MAX_ENTRIES = 50_000
MAX_BYTES = 50_000_000

_ITEMS = frozenset(("item", "entry"))
_DATES = frozenset(("pubdate", "updated", "published", "date", "modified", "issued"))


def parse_feed(
    data: bytes, content_type: str = "", *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
) -> Listing:
    """The addresses of a feed's entries, as written, each with its latest date."""
    reader = _FeedReader(max_entries)
    whole = read_xml(pieces_of(data, max_bytes), content_type, reader.start, reader.end)
    return Listing(tuple(reader.entries), whole)


class _FeedReader:
    def __init__(self, max_entries: int) -> None:
        self.entries: list[Entry] = []
        self._max_entries = max_entries
        self._inside = False
        self._permalink = False
        self._link = self._spare = ""
        self._times: list[float] = []

    def start(self, name: str, attributes: Attributes) -> None:
        if name in _ITEMS:
            self._clear()
            self._inside = True
            self._spare = attributes.get("rdf:about", "")
        elif name == "link" and attributes.get("rel", "alternate") == "alternate":
            self._link = self._link or attributes.get("href", "")
        elif name == "guid":
            self._permalink = attributes.get("isPermaLink", "true").lower() == "true"

    def end(self, name: str, text: str) -> bool:
        if not self._inside:
            return True
        if name == "link":
            self._link = self._link or text
        elif name == "guid" and self._permalink and text.startswith(("http://", "https://")):
            self._spare = text
        elif name in _DATES:
            self._times.append(time_of(text) or 0.0)
        elif name in _ITEMS:
            return self._finish()
        return True

    def _finish(self) -> bool:
        href = self._link or self._spare
        if href and len(self.entries) < self._max_entries:
            self.entries.append(Entry(href, max(self._times, default=0.0) or None))
            href = ""
        self._clear()
        return not href

    def _clear(self) -> None:
        self._link = self._spare = ""
        self._times = []
        self._inside = False
