"""Page parser: bytes in, facts out; it never raises."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from functools import partial
from typing import ClassVar, NamedTuple

import msgspec
from selectolax.lexbor import LexborHTMLParser

from levada.core.errors import BadUrl
from levada.core.hashing import content_digest
from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, DocumentFacts, PageKind, ParsedPage, RawPage, ReadPage, Refusal
from levada.core.structured import StructuredData, pack_data
from levada.pages.change import is_same_page, page_digest, trigger_states, watch_in, with_watch
from levada.pages.charset import LOOK, UNREAD, Decoded, decode, says_utf8, unmarked_utf16
from levada.pages.compression import pack_content, unpack_text
from levada.pages.documents.gathering import PAGE_BREAK, Unreadable, title_or_name
from levada.pages.documents.recognition import JSON, XML, document_kind, is_locked, reader_of
from levada.pages.feeds import Listing, parse_feed, parse_sitemap, pieces_of
from levada.pages.html import MAX_TITLE, Head, PageNames, follow_links, names_of, read_head, too_deep, tree_of
from levada.pages.language import NO_WORDS, gist_of, language_of, profile_of
from levada.pages.links import LinkCollector
from levada.pages.parts.rule import CompiledRule, compiled_rule
from levada.pages.plugins import ReadingPlugins
from levada.pages.structured.reading import offers_mark, read_data
from levada.pages.text import READER, drop_silent, read_main_text, tidy_lines
from levada.pages.unsteady import Watch
from levada.pages.urls import canonical, may_run_on, site_of

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
    GZIP = "gzip"  # its content decides
    DOCUMENT = "document"  # PDF, office files, e-books, data
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
    """The form of a page by its content type, or by its first bytes if the type says nothing."""
    media = page.content_type.partition(";")[0].strip().lower()
    start = page.body[:LOOK]
    if start.startswith(b"\x1f\x8b"):
        return Form.GZIP
    if start.startswith(_MAGIC) or (_is_binary(start, media) and not _may_be_wide(start, page.content_type)):
        return _document_form(page) or Form.OTHER
    if page.kind is PageKind.SITEMAP:
        return _form_of_sitemap(start, media)
    if media in _HTML_TYPES:
        return Form.HTML
    if media.endswith("xml") or media in _XML_TYPES:
        return _root_form(start) or (Form.FEED if media.endswith(_FEED_TYPES) else _xml_form(media))
    if (document := _document_form(page)) is not None:
        return document
    if media in _OPEN_TYPES:
        return _root_form(start) or (Form.HTML if b"<" in start else Form.PLAIN)
    return Form.PLAIN if media.startswith("text/") else Form.OTHER


def _document_form(page: RawPage) -> Form | None:
    return Form.DOCUMENT if page.kind is not PageKind.SITEMAP and document_kind(page) else None


def _xml_form(media: str) -> Form:
    """Pictures and sounds in XML have no text."""
    return Form.DOCUMENT if media.startswith(("text/", "application/")) else Form.OTHER


def _form_of_sitemap(start: bytes, media: str) -> Form:
    found = _root_form(start)
    if found is not None:
        return Form.OTHER if found is Form.HTML else found
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"http://", b"https://")):
        return Form.SITEMAP
    return Form.OTHER if media in _HTML_TYPES or b"<" not in start else Form.SITEMAP


def _root_form(start: bytes) -> Form | None:
    """The form by the name of the first element."""
    found = _ROOT.search(_SKIPPED.sub(b"", start))
    if found is None:
        return Form.HTML if b"<!doctype html" in start.lower() else None
    return _ROOTS.get(found[1].lower())


def _is_binary(start: bytes, media: str) -> bool:
    if media in _HTML_TYPES:  # browsers show these with stray control characters too
        return b"\0" in start
    return len(start.translate(None, _BINARY)) != len(start)


def _may_be_wide(start: bytes, content_type: str) -> bool:
    return start.startswith(_WIDE) or "utf-16" in content_type.lower() or unmarked_utf16(start) is not None


_UNREAD = UNREAD.encode()
_LARGE = 1_000_000  # bytes of HTML
_THIN_WORDS, _THIN_SHARE = 100, 20  # a main text of fewer words, and of less than a 20th of the page's bytes
NOWHERE = "http://invalid/"  # the base of a page whose own URL is invalid


class ParseLimits(msgspec.Struct, frozen=True):
    """How much of a page is read and kept, and for which agent."""

    max_link_bytes: int = 16_000_000  # of the addresses on a page, each with its record: see `LinkCollector`
    max_refused: int = 20
    max_url_length: int = 2_000
    max_nesting: int = 5_000
    max_html_bytes: int = 10_000_000
    max_entries: int = 50_000  # of a sitemap or feed
    max_unpacked_bytes: int = 50_000_000  # of a sitemap
    zstd_level: int = 1  # within 2% of the size of level 3, in two thirds of its time
    agent: str = "levada"  # whose robots directives are read
    plugins: ReadingPlugins | None = None  # None: built-ins alone read pages
    document_cage: Callable[[], AbstractContextManager[None]] = nullcontext  # around the reading of a document


def parse_page(page: RawPage, limits: ParseLimits = ParseLimits()) -> ParsedPage:  # noqa: B008 - frozen
    """The content of a page, or the reason why there is none."""
    if not page.body:
        return ParsedPage(page.kind, reason=Reason.EMPTY)
    if limits.plugins is not None:
        return _parse_with(limits.plugins, page, limits)
    return _BY_FORM[form_of(page)](page, limits)


def _parse_with(plugins: ReadingPlugins, page: RawPage, limits: ParseLimits) -> ParsedPage:
    """As a chosen reader reads the page; as the built-in one does, if there is none or it fails."""
    is_ours = not plugins.reads(page)
    read = None if is_ours else plugins.read(page)
    if read is not None:
        parsed = _parse_read(page, read, limits)
    else:
        parsed = _BY_FORM[form_of(page)](page, limits)
        if not is_ours and parsed.reason is Reason.CONTENT_TYPE:
            parsed = msgspec.structs.replace(parsed, reason=Reason.PLUGIN)
    failures = plugins.take_failures()
    return msgspec.structs.replace(parsed, plugin_failures=failures) if failures else parsed


def _parse_document(page: RawPage, limits: ParseLimits) -> ParsedPage:
    if is_locked(page.body):
        return ParsedPage(page.kind, reason=Reason.ENCRYPTED)
    try:
        with limits.document_cage():
            kind = document_kind(page) or XML
            if kind == JSON and page.rule is not None and compiled_rule(page.rule).concerns_data:
                return _parse_json_parts(page, compiled_rule(page.rule), limits)
            read = reader_of(kind).read(page.body, page.content_type, page.url)
            has_content = read.pages or not (read.text.isspace() or not read.text)
            title = title_or_name(read.title, page.url) if has_content else read.title
            return _parse_read(page, msgspec.structs.replace(read, title=title), limits)
    except Unreadable as error:
        return ParsedPage(page.kind, reason=error.reason)
    except (ValueError, LookupError, ArithmeticError, RecursionError):  # whatever else a hostile file may be
        return ParsedPage(page.kind, reason=Reason.DAMAGED)


def _parse_json_parts(page: RawPage, rule: CompiledRule, limits: ParseLimits) -> ParsedPage:
    from levada.pages.documents.data import read_json  # as late as the readers are imported

    read = read_json(page.body, page.content_type, rule.remove_data, rule.select_data if rule.selects_data else None)
    found_nothing = rule.selects_data and not read.text
    read = msgspec.structs.replace(read, title=title_or_name(read.title, page.url))
    return _parse_read(page, read, limits, found_nothing=found_nothing)


def _parse_read(page: RawPage, read: ReadPage, limits: ParseLimits, *, found_nothing: bool = False) -> ParsedPage:
    parts = read.text.split(PAGE_BREAK) if read.pages else [read.text]
    text = PAGE_BREAK.encode().join([tidy_lines(part.encode("utf-8", "replace")) for part in parts])
    head = Head(title=_storable(" ".join(read.title.split())[:MAX_TITLE]), language=_storable(read.language))
    links = _collector(page, limits)
    links.add_all(map(_storable, read.links))
    parsed = _describe(page, "utf-8", head, text, links, limits, found_nothing=found_nothing)
    author = _storable(" ".join(read.author.split())[:MAX_TITLE])
    facts = DocumentFacts(author, read.published, read.modified, read.pages, _storable(read.left_out[:MAX_TITLE]))
    dated = read.published if read.modified is None else read.modified
    return msgspec.structs.replace(parsed, published=dated, facts=None if facts == _NO_FACTS else facts)


_NO_FACTS = DocumentFacts()
_NO_DATA = StructuredData()


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _parse_html(page: RawPage, limits: ParseLimits) -> ParsedPage:
    body = page.body[: limits.max_html_bytes]
    # Most pages declared as UTF-8 are UTF-8: lexbor reads them without decoding, and shows other bytes as U+FFFD.
    is_sure = not says_utf8(body, page.content_type)
    decoded = decode(body, page.content_type, page.url) if is_sure else Decoded(body, "utf-8")
    html = _read_html(page, decoded.utf8, limits)
    if not is_sure and html is not None and html.is_garbled:
        decoded = decode(body, page.content_type, page.url)
        html = _read_html(page, decoded.utf8, limits)
    if html is None:
        return ParsedPage(PageKind.PAGE, charset=decoded.charset, reason=Reason.NESTING)
    parts = (html.head, html.text, html.links, limits)
    return _describe(page, decoded.charset, *parts, html)


class _Html(NamedTuple):
    head: Head
    text: bytes
    links: LinkCollector
    data: StructuredData
    compared: bytes = b""  # the text without the noise in it; b"": the same
    found_nothing: bool = False  # nothing of what the rule selects is on the page
    reader: int = 0  # the version of the reader that found the text, if that was the built-in one
    names: Callable[[], PageNames] = PageNames  # asked for where a version is stored

    @property
    def is_garbled(self) -> bool:
        # Searching a single byte takes a tenth of the time.
        in_text = _UNREAD[:1] in self.text and _UNREAD in self.text
        return in_text or self.links.are_garbled or UNREAD in self.head.title


def _read_html(page: RawPage, html: bytes, limits: ParseLimits) -> _Html | None:
    """Head, text and links; None if the page is nested too deeply."""
    if too_deep(html, limits.max_nesting):
        return None
    tree = tree_of(html)
    head = read_head(tree, limits.agent)
    links = _collector(page, limits)
    follow_links(tree, head, links)
    data = read_data(tree, html, head.described, page.url, head.base)
    whole = _Html(head, b"", links, data, names=partial(names_of, tree, links))
    if page.rule is not None:
        return _read_parts(compiled_rule(page.rule), page, tree, html, whole, limits)
    if len(html) > _LARGE:  # its tree takes ten to twenty times its bytes: it is gone when the lines are read
        whole = whole._replace(names=partial(PageNames, *names_of(tree, links)))
        del tree
        return _with_main_text(page, None, html, whole, limits)
    return _with_main_text(page, tree, html, whole, limits)


def _with_main_text(
    page: RawPage, tree: LexborHTMLParser | None, html: bytes, whole: _Html, limits: ParseLimits
) -> _Html:
    text = b"" if limits.plugins is None else limits.plugins.main_text(html, page.url)
    if text:
        return whole._replace(text=text)
    if tree is not None:  # what menus call other pages is read before they are dropped
        drop_silent(tree)
        whole = whole._replace(names=partial(PageNames, *names_of(tree, whole.links)))
    read = read_main_text(tree, html, whole.head.title, is_stripped=True)
    return whole._replace(text=read.text, compared=read.compared, reader=READER)


def _read_parts(
    rule: CompiledRule, page: RawPage, tree: LexborHTMLParser, html: bytes, whole: _Html, limits: ParseLimits
) -> _Html:
    """The text of what counts by the rule; title and links are those of the whole page."""
    if rule.removes_elements and any(rule.remove(tree)):
        html = (tree.html or "").encode("utf-8", "replace")
    if not rule.selects_elements:
        return _with_main_text(page, tree, html, whole, limits)
    text = rule.select(tree, whole.data).text
    return whole._replace(text=text, found_nothing=not text)


def _parse_plain(page: RawPage, limits: ParseLimits) -> ParsedPage:
    decoded = decode(page.body[: limits.max_html_bytes], page.content_type, page.url)
    text = tidy_lines(decoded.utf8)
    head = Head(title=text.partition(b"\n")[0].decode("utf-8", "replace")[:100])
    return _describe(page, decoded.charset, head, text, _collector(page, limits), limits)


def _parse_packed(page: RawPage, limits: ParseLimits) -> ParsedPage:
    start = next(pieces_of(page.body, limits.max_unpacked_bytes), b"")
    form = form_of(RawPage(page.url, start, kind=PageKind.SITEMAP))
    is_listing = form is Form.SITEMAP or form is Form.FEED
    return _BY_FORM[form if is_listing else Form.OTHER](page, limits)


def _parse_listing(
    read: Callable[..., Listing], kind: PageKind, how: DiscoveredBy, page: RawPage, limits: ParseLimits
) -> ParsedPage:
    """A sitemap or feed: its links are its content."""
    listing = read(page.body, page.content_type, max_entries=limits.max_entries, max_bytes=limits.max_unpacked_bytes)
    links = _collector(page, limits)
    for href, lastmod, is_list in listing.entries:
        links.add(href, how, lastmod=lastmod, kind=PageKind.SITEMAP if is_list else PageKind.PAGE)
    entries, refused = links.marked(), links.refused()
    is_cut = links.are_cut
    if not listing.whole and len(listing.entries) >= limits.max_entries:  # how many more there are is not known
        is_cut, refused = True, (*refused, Refusal(page.url, site_of(page.url), Reason.LINKS))
    nothing = Reason.EMPTY if listing.whole else Reason.CONTENT_TYPE
    cut = Reason.LINKS if is_cut else None
    return ParsedPage(
        kind,
        text_digest=content_digest("\n".join(f"{link.url} {link.lastmod}" for link in entries).encode()),
        marked=entries,
        refused=refused,
        reason=cut if entries else nothing,
    )


def _describe(
    page: RawPage,
    charset: str,
    head: Head,
    text: bytes,
    links: LinkCollector,
    limits: ParseLimits,
    html: _Html | None = None,
    *,
    found_nothing: bool = False,
) -> ParsedPage:
    data, reader, compared, title = _NO_DATA, 0, text, head.title
    if html is not None:
        data, reader, compared, found_nothing = html.data, html.reader, html.compared or text, html.found_nothing
    if limits.plugins is not None:
        compared = limits.plugins.compared_text(compared, page.url)
    if b"\f" in compared:  # where the pages of a document end is no part of what it says
        compared = compared.replace(b"\f", b"\n")
    told, states = True, b""
    if page.rule is not None:
        rule = compiled_rule(page.rule)
        compared, title = rule.compared_text(compared), rule.compared_title(title)
        states = rule.triggers.states(compared)
        told = rule.triggers.are_met(states, trigger_states(page.known_text, page.rule, reader))
    watch = b""
    if page.rule is None and reader and (page.changes or watch_in(page.known_text)):
        unsteady = Watch.unpacked(watch_in(page.known_text)).after(compared, page.changes)
        compared, watch = unsteady.compared(compared), unsteady.packed()
    marks = {"states": states, "offers": offers_mark(data)}
    asked, on_page = page.noindex, head.noindex
    digest = page_digest(compared, title, asked=asked, on_page=on_page, rule=page.rule, reader=reader, **marks)
    digest = with_watch(digest, watch)
    known = is_same_page(digest, page.known_text)
    profile = NO_WORDS if known else profile_of(text)  # the stored version has the same
    plain, marked = links.links(), links.marked()
    nothing = None if text or head.title or plain or marked else Reason.EMPTY
    if links.are_cut:
        nothing = Reason.LINKS
    is_in_run = page.known_text is None and may_run_on(page.url)
    names = b"" if known or found_nothing or html is None else html.names().packed(text)
    return ParsedPage(
        PageKind.PAGE,
        title=head.title,
        language=language_of(head.language, b"" if known else text),
        charset=charset,
        text_digest=digest,
        content_zstd=b"" if known or found_nothing else pack_content(text, page.body, limits.zstd_level, names),
        data=b"" if known or found_nothing else pack_data(data),
        sketch=profile.sketch,
        words=profile.words,
        distinct_words=profile.distinct,
        links=plain,
        marked=marked,
        refused=links.refused(),
        canonical=links.address(head.canonical) if head.canonical else None,
        noindex=head.noindex or page.noindex,
        nofollow=head.nofollow,
        reason=Reason.NO_MATCH if found_nothing else nothing,
        told=told,
        gist=gist_of(text) if is_in_run else 0,
        is_thin=profile.words < _THIN_WORDS and len(text) * _THIN_SHARE < len(page.body),
    )


def _collector(page: RawPage, limits: ParseLimits) -> LinkCollector:
    try:
        base = canonical(page.url)
    except BadUrl:
        base = NOWHERE
    return LinkCollector(
        base,
        site_of(base),
        max_bytes=limits.max_link_bytes,
        max_refused=limits.max_refused,
        max_length=limits.max_url_length,
    )


_BY_FORM: dict[Form, Callable[[RawPage, ParseLimits], ParsedPage]] = {
    Form.HTML: _parse_html,
    Form.PLAIN: _parse_plain,
    Form.SITEMAP: partial(_parse_listing, parse_sitemap, PageKind.SITEMAP, DiscoveredBy.SITEMAP),
    Form.FEED: partial(_parse_listing, parse_feed, PageKind.FEED, DiscoveredBy.FEED),
    Form.GZIP: _parse_packed,
    Form.DOCUMENT: _parse_document,
    Form.OTHER: lambda page, limits: ParsedPage(page.kind, reason=Reason.CONTENT_TYPE),
}


class _BuiltinReader:
    """A built-in reader as others may use it: a page is read as in a crawl, and what was found is handed over."""

    content_types: ClassVar[tuple[str, ...]]
    _form: ClassVar[Form]

    def read(self, body: bytes, content_type: str, url: str) -> ReadPage:
        parsed = _BY_FORM[self._form](RawPage(url, body, content_type), _DEFAULT)
        if parsed.reason not in (None, Reason.EMPTY, Reason.LINKS):
            raise ValueError(f"the body cannot be read: {parsed.reason}")
        links = (*parsed.links, *(link.url for link in parsed.marked))
        text = unpack_text(parsed.content_zstd).decode() if parsed.content_zstd else "\n".join(links)
        return ReadPage(title=parsed.title, text=text, links=links, language=parsed.language)


class HtmlReader(_BuiltinReader):
    content_types = tuple(sorted(_HTML_TYPES))
    _form = Form.HTML


class TextReader(_BuiltinReader):
    content_types = ("text/plain",)
    _form = Form.PLAIN


class SitemapReader(_BuiltinReader):
    """The addresses of a sitemap are its links, and its text."""

    content_types = tuple(sorted(_XML_TYPES))
    _form = Form.SITEMAP


class FeedReader(_BuiltinReader):
    """The addresses of a feed's entries are its links, and its text."""

    content_types = tuple(f"application/{each}" for each in _FEED_TYPES)
    _form = Form.FEED


_DEFAULT = ParseLimits()
