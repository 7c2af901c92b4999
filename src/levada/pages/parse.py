"""What is on this page? The one entry to everything in this package; it never raises, whatever the bytes."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from levada.errors import BadUrl
from levada.hashing import content_digest
from levada.pages.change import page_digest
from levada.pages.charset import UNREAD, Decoded, decode, says_utf8
from levada.pages.compression import pack_content
from levada.pages.extraction import extracted_text
from levada.pages.feed import parse_feed
from levada.pages.html import Head, follow_links, read_head, tree_of
from levada.pages.language import language_of
from levada.pages.links import LinkCollector
from levada.pages.listing import pieces_of
from levada.pages.nesting import too_deep
from levada.pages.sitemap import parse_sitemap
from levada.pages.sniff import Form, form_of
from levada.pages.text import main_text, tidy_lines
from levada.pages.urls import canonical, site_of
from levada.pages.words import NO_WORDS, profile_of
from levada.reasons import Reason
from levada.records import How, PageKind, ParsedPage, RawPage

__all__ = ["ParseLimits", "parse_page"]

_UNREAD = UNREAD.encode()
NOWHERE = "http://invalid/"  # base of a page whose own address cannot be read


class ParseLimits(msgspec.Struct, frozen=True):
    """How much of a page is read and kept, and for whom."""

    max_links: int = 2_000
    max_refused: int = 20
    max_url_length: int = 2_000
    max_nesting: int = 5_000
    max_html_bytes: int = 10_000_000
    max_entries: int = 50_000  # of a sitemap or feed
    max_unpacked_bytes: int = 50_000_000  # of a sitemap
    zstd_level: int = 1  # within 2% of the size of level 3, in two thirds of its time
    main_text: Literal["builtin", "trafilatura"] = "builtin"
    agent: str = "levada"  # the name by which a page may ask not to be kept


def parse_page(page: RawPage, limits: ParseLimits = ParseLimits()) -> ParsedPage:  # noqa: B008 - frozen
    """The facts on a page, or the reason why there are none."""
    if not page.body:
        return ParsedPage(page.kind, reason=Reason.EMPTY)
    form = form_of(page)
    if form is Form.HTML:
        return _parse_html(page, limits)
    if form is Form.PLAIN:
        return _parse_plain(page, limits)
    if form is Form.GZIP:
        start = next(pieces_of(page.body, limits.max_unpacked_bytes), b"")
        form = form_of(RawPage(page.url, start, kind=PageKind.SITEMAP))
    if form in (Form.SITEMAP, Form.FEED):
        return _parse_listing(page, form, limits)
    return ParsedPage(page.kind, reason=Reason.CONTENT_TYPE)


def _parse_html(page: RawPage, limits: ParseLimits) -> ParsedPage:
    body = page.body[: limits.max_html_bytes]
    # Most pages that are said to be UTF-8 are: lexbor reads them as they stand, and what is not shows as U+FFFD.
    is_sure = not says_utf8(body, page.content_type)
    decoded = decode(body, page.content_type) if is_sure else Decoded(body, "utf-8")
    html = _read_html(page, decoded.utf8, limits)
    if not is_sure and html is not None and html.is_garbled:
        decoded = decode(body, page.content_type)
        html = _read_html(page, decoded.utf8, limits)
    if html is None:
        return ParsedPage(PageKind.PAGE, charset=decoded.charset, reason=Reason.NESTING)
    return _describe(page, decoded.charset, html.head, html.text, html.links, limits)


class _Html(NamedTuple):
    head: Head
    text: bytes
    links: LinkCollector

    @property
    def is_garbled(self) -> bool:
        # A single byte is found, or not, in a tenth of the time.
        in_text = _UNREAD[:1] in self.text and _UNREAD in self.text
        return in_text or self.links.are_garbled or UNREAD in self.head.title


def _read_html(page: RawPage, html: bytes, limits: ParseLimits) -> _Html | None:
    """What stands in it; None if it is nested too deeply to be read."""
    if too_deep(html, limits.max_nesting):
        return None
    tree = tree_of(html)
    head = read_head(tree, limits.agent)
    links = _collector(page, limits)
    follow_links(tree, head, links)
    text = main_text(tree, html) if limits.main_text == "builtin" else extracted_text(html) or main_text(tree, html)
    return _Html(head, text, links)


def _parse_plain(page: RawPage, limits: ParseLimits) -> ParsedPage:
    decoded = decode(page.body[: limits.max_html_bytes], page.content_type)
    text = tidy_lines(decoded.utf8)
    head = Head(title=text.partition(b"\n")[0].decode("utf-8", "replace")[:100])
    return _describe(page, decoded.charset, head, text, _collector(page, limits), limits)


def _parse_listing(page: RawPage, form: Form, limits: ParseLimits) -> ParsedPage:
    """A sitemap or feed: its links are its content."""
    is_sitemap = form is Form.SITEMAP
    read, how, kind = (
        (parse_sitemap, How.SITEMAP, PageKind.SITEMAP) if is_sitemap else (parse_feed, How.FEED, PageKind.FEED)
    )
    listing = read(
        page.body, page.content_type, max_entries=limits.max_entries, max_bytes=limits.max_unpacked_bytes
    )
    links = _collector(page, limits, max_links=limits.max_entries)
    for href, lastmod, is_list in listing.entries:
        links.add_as(href, how, lastmod=lastmod, kind=PageKind.SITEMAP if is_list else PageKind.PAGE)
    entries = links.marked()
    nothing = Reason.EMPTY if listing.whole else Reason.CONTENT_TYPE
    return ParsedPage(
        kind,
        text_digest=content_digest("\n".join(f"{link.url} {link.lastmod}" for link in entries).encode()),
        marked=entries,
        refused=links.refused(),
        reason=None if entries else nothing,
    )


def _describe(
    page: RawPage, charset: str, head: Head, text: bytes, links: LinkCollector, limits: ParseLimits
) -> ParsedPage:
    noindex = head.noindex or page.noindex
    digest = page_digest(text, head.title, asked=page.noindex, on_page=head.noindex)
    known = digest == page.known_text
    profile = NO_WORDS if known else profile_of(text)  # what is stored already tells as much
    plain, marked = links.links(), links.marked()
    return ParsedPage(
        PageKind.PAGE,
        title=head.title,
        language=language_of(head.language, profile.vocabulary),
        charset=charset,
        text_digest=digest,
        content_zstd=b"" if known else pack_content(text, page.body, limits.zstd_level),
        sketch=profile.sketch,
        words=profile.words,
        distinct_words=profile.distinct,
        links=plain,
        marked=marked,
        refused=links.refused(),
        canonical=links.address(head.canonical) if head.canonical else None,
        noindex=noindex,
        nofollow=head.nofollow,
        reason=None if text or head.title or plain or marked else Reason.EMPTY,
    )


def _collector(page: RawPage, limits: ParseLimits, max_links: int | None = None) -> LinkCollector:
    try:
        base = canonical(page.url)
    except BadUrl:
        base = NOWHERE
    return LinkCollector(
        base,
        site_of(base),
        max_links=limits.max_links if max_links is None else max_links,
        max_refused=limits.max_refused,
        max_length=limits.max_url_length,
    )
