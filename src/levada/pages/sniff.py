"""What kind of bytes are these: a page, a sitemap, a feed, plain text, or nothing that we read?"""

from __future__ import annotations

import re
from enum import Enum

from levada.records import PageKind, RawPage

__all__ = ["Form", "form_of"]

LOOK = 1024

_ROOT = re.compile(rb"<(?![?!])(?:[A-Za-z_][\w.\-]{0,60}:)?([A-Za-z_][\w.\-]{0,60})")
_SKIPPED = re.compile(rb"<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]{0,300}>", re.DOTALL | re.IGNORECASE)
_BINARY = bytes([*range(0x09), *range(0x0E, 0x1B)])
_MAGIC = (b"%PDF-", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"\x7fELF", b"Rar!", b"OggS", b"ID3")
_WIDE = (b"\xff\xfe", b"\xfe\xff")

_HTML_TYPES = frozenset(("text/html", "application/xhtml+xml"))
_FEED_TYPES = ("rss+xml", "atom+xml", "rdf+xml")
_XML_TYPES = frozenset(("text/xml", "application/xml"))
_OPEN_TYPES = frozenset(
    ("", "application/octet-stream", "application/gzip", "application/x-gzip", "binary/octet-stream")
)


class Form(Enum):
    HTML = "html"
    SITEMAP = "sitemap"
    FEED = "feed"
    PLAIN = "plain"
    GZIP = "gzip"  # look again when it is unpacked
    OTHER = "other"


_ROOTS = {
    b"urlset": Form.SITEMAP,
    b"sitemapindex": Form.SITEMAP,
    b"rss": Form.FEED,
    b"feed": Form.FEED,
    b"rdf": Form.FEED,
    b"html": Form.HTML,
}


def form_of(page: RawPage) -> Form:
    """Judge by the header where it says something, and by the first bytes where it does not."""
    media = page.content_type.partition(";")[0].strip().lower()
    start = page.body[:LOOK]
    if start.startswith(b"\x1f\x8b"):
        return Form.GZIP
    if start.startswith(_MAGIC) or (_is_binary(start, media) and not _may_be_wide(start, page.content_type)):
        return Form.OTHER
    if page.kind is PageKind.SITEMAP:
        return _form_of_sitemap(start, media)
    if media in _HTML_TYPES:
        return Form.HTML
    if media.endswith("xml") or media in _XML_TYPES:
        return _root_form(start) or (Form.FEED if media.endswith(_FEED_TYPES) else Form.OTHER)
    if media in _OPEN_TYPES:
        return _root_form(start) or (Form.HTML if b"<" in start else Form.PLAIN)
    return Form.PLAIN if media.startswith("text/") else Form.OTHER


def _form_of_sitemap(start: bytes, media: str) -> Form:
    found = _root_form(start)
    if found is not None:
        return Form.OTHER if found is Form.HTML else found
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"http://", b"https://")):
        return Form.SITEMAP
    return Form.OTHER if media in _HTML_TYPES or b"<" not in start else Form.SITEMAP


def _root_form(start: bytes) -> Form | None:
    """By the name of the first element."""
    found = _ROOT.search(_SKIPPED.sub(b"", start))
    if found is None:
        return Form.HTML if b"<!doctype html" in start.lower() else None
    return _ROOTS.get(found[1].lower())


def _is_binary(start: bytes, media: str) -> bool:
    if media in _HTML_TYPES:  # what browsers show with a stray control character in it
        return b"\0" in start
    return len(start.translate(None, _BINARY)) != len(start)


def _may_be_wide(start: bytes, content_type: str) -> bool:
    return start.startswith(_WIDE) or "utf-16" in content_type.lower()
