"""Metadata, links and directives of an HTML page."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import msgspec
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from levada.core.hashing import term_number
from levada.core.records import PageKind
from levada.pages.links import OWN_PARTS, LinkCollector
from levada.pages.robots import product_of

TAG_BYTES = 6  # a page with fewer bytes per allowed level cannot be too deep
# Elements that are empty, or that the next of their kind closes.
_FLAT = frozenset(
    b"area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead tbody tfoot option "
    b"optgroup colgroup param script style".split()
)
_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9\-]*)([^<>]*)")
_DRAWINGS = frozenset((b"svg", b"math"))
_HTML_IN_DRAWINGS = frozenset((b"title", b"desc", b"foreignobject"))
_ENDS_DRAWING = frozenset(
    b"b big blockquote body center code dd div dl dt em h1 h2 h3 h4 h5 h6 head i li menu nobr ol p pre ruby s small "
    b"span strike strong sub sup table tt u ul var".split()
)


def too_deep(html: bytes, limit: int) -> bool:
    """Whether more than `limit` elements seem to be open at once.

    An estimate from the bytes, because building the tree of such a page is what takes the time and memory. A slash
    closes an element only in a drawing: elsewhere browsers ignore it.
    """
    if len(html) <= TAG_BYTES * limit or html.count(b"<") - html.count(b"</") <= limit:
        return False
    depth = 0
    in_drawing, within = False, b""  # within: the element of a drawing that holds HTML again
    for found in _TAG.finditer(html):
        closing, name, rest = found[1], found[2].lower(), found[3]
        if name in _DRAWINGS:
            in_drawing, within = not closing, b""
        elif within:
            within = b"" if closing and name == within else within
        elif in_drawing and not closing:
            within = name if name in _HTML_IN_DRAWINGS else b""
            in_drawing = name not in _ENDS_DRAWING
        if name in _FLAT or (in_drawing and not within and rest.endswith(b"/")):
            continue
        depth = max(depth - 1, 0) if closing else depth + 1
        if depth > limit:
            return True
    return False


MAX_TITLE = 500
MOST_ANCHORS = 150  # links of a page whose texts are kept
LONGEST_ANCHOR = 80  # characters
MOST_HEADINGS = 100  # of a page that are kept
LONGEST_HEADING = 80  # characters
_HEADINGS = "h1,h2,h3,h4,dt[id],caption,figcaption"
_PERMALINK = " ¶#"  # what a heading of documentation ends with
_pack = msgspec.msgpack.Encoder().encode
_number_of = lru_cache(maxsize=4096)(term_number)  # the pages of a site have many links in common
NO_VOTE = frozenset(("nofollow", "ugc", "sponsored"))
FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/rdf+xml")
# Without a browser's DOM events: that is faster, and a page cannot make its tree grow.
_AS_WRITTEN = int(LexborDocumentOptions.WO_EVENTS)
_IN_BODY = "meta,link,base"  # of a broken head
_NO_HEADING = frozenset(("script", "style", "template", "title"))  # a title in a heading belongs to a picture
# Names of meta elements that describe what the page is about (`levada.pages.structured.meta`).
DESCRIPTIVE = ("og:", "article:", "book:", "product:", "video:", "music:", "twitter:", "dc.", "dc:", "dcterms")
_MOST_DESCRIBED = 200
_APART = frozenset(("div", "p"))
_PARTS = frozenset(("body", "main", "article", "section", "div", "td"))  # that may hold the text of a page
_MOST_PARTS = 50
# After the seconds, `url=` is optional; a number alone reloads the page itself.
_REFRESH = re.compile(
    r"""\s*(?:[\d.]++(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?+|url\s*=\s*)(?:"([^"]*)|'([^']*)|([^"'\s].*))""",
    re.IGNORECASE | re.DOTALL,
)


class Head(NamedTuple):
    """The head of a page; URLs as written."""

    title: str = ""
    language: str = ""
    base: str = ""
    canonical: str = ""
    noindex: bool = False
    nofollow: bool = False
    links: tuple[tuple[str, PageKind], ...] = ()  # next pages and feeds
    described: tuple[tuple[str, str], ...] = ()  # meta elements of OpenGraph and the like: name and content


def tree_of(html: bytes) -> LexborHTMLParser:
    return LexborHTMLParser(html, options=_AS_WRITTEN)


def read_head(tree: LexborHTMLParser, agent: str) -> Head:
    """Title, base, canonical, the directives for `agent` or all robots, and the links of `link` elements."""
    product = product_of(agent)
    title = base = canonical = language = ""
    robots: set[str] = set()
    links: list[tuple[str, PageKind]] = []
    described: list[tuple[str, str]] = []
    for node in _head_nodes(tree):
        tag = node.tag
        if tag == "title":
            title = title or _one_line(node)
            continue
        attributes = node.attributes
        href = attributes.get("href") or ""
        if tag == "meta":
            robots |= _directives(attributes, product)
            links += _refresh(attributes)
            name = (attributes.get("property") or attributes.get("name") or "").lower()
            if (attributes.get("http-equiv") or "").lower() == "content-language":
                language = language or attributes.get("content") or ""
            if name.startswith(DESCRIPTIVE) and len(described) < _MOST_DESCRIBED:
                described.append((name, attributes.get("content") or ""))
        elif tag == "base":
            base = base or href
        elif tag == "link" and href:
            rel = (attributes.get("rel") or "").lower().split()
            canonical = canonical or (href if "canonical" in rel else "")
            links += _link_element(rel, href, attributes)
    return Head(
        title or _title_in_body(tree) or _first_heading(tree),
        _language(tree) or language.partition(",")[0],
        base,
        canonical,
        noindex=not robots.isdisjoint(("noindex", "none")),
        nofollow=not robots.isdisjoint(("nofollow", "none")),
        links=tuple(links),
        described=tuple(described),
    )


def _head_nodes(tree: LexborHTMLParser) -> list[LexborNode]:
    """The head's elements, and those that a broken head left in the body."""
    nodes = [] if tree.head is None else list(tree.head.traverse())
    return nodes if tree.body is None else nodes + tree.body.css(_IN_BODY)


def follow_links(tree: LexborHTMLParser, head: Head, links: LinkCollector) -> None:
    """Hand every link of the page to the collector: the head's, then `a`, `area` and frames, in document order."""
    if head.base:
        links.rebase(head.base)
    if head.canonical and links.address(head.canonical) is None:
        links.add(head.canonical)  # it may not be fetched: only the refusal is kept
    for href, kind in head.links:
        links.add(href, kind=kind)
    hrefs: dict[str, None] = {}  # in order, each once: a picture and its headline often have the same link
    for node in tree.css("a,area"):
        attributes = node.attributes
        if "href" not in attributes:
            continue
        rel = attributes.get("rel")
        if rel and not NO_VOTE.isdisjoint(rel.lower().split()):
            links.add_all(hrefs)
            hrefs.clear()
            links.add(attributes["href"] or "", nofollow=True)
        else:
            hrefs[attributes["href"] or ""] = None
    if tree.body is None:  # a frameset is in its place
        hrefs.update((src, None) for node in tree.tags("frame") if (src := node.attributes.get("src")))
    links.add_all(hrefs)


class PageNames(NamedTuple):
    """What a page calls its parts, and others where it links to them."""

    headings: tuple[str, ...] = ()
    anchors: tuple[tuple[int, str], ...] = ()

    def packed(self, text: bytes) -> bytes:
        """For `levada.pages.links.names_in`, with those headings that are in the main text."""
        own = ((OWN_PARTS, each) for each in self.headings if each.encode() in text)
        return _pack(found) if (found := [*own, *self.anchors]) else b""


def names_of(tree: LexborHTMLParser, links: LinkCollector) -> PageNames:
    return PageNames(_headings(tree), _anchors(tree, links))


def _anchors(tree: LexborHTMLParser, links: LinkCollector) -> tuple[tuple[int, str], ...]:
    found: dict[tuple[int, str], None] = {}
    for node in tree.tags("a"):
        attributes = node.attributes
        href, rel = attributes.get("href"), attributes.get("rel")
        if not href or href[0] == "#" or (rel and not NO_VOTE.isdisjoint(rel.lower().split())):
            continue
        text = " ".join(node.text()[: 4 * LONGEST_ANCHOR].split())[:LONGEST_ANCHOR]
        if text and (url := links.address(href)) is not None:
            found[_number_of(url), _storable(text)] = None
            if len(found) >= MOST_ANCHORS:
                break
    return tuple(found)


def _headings(tree: LexborHTMLParser) -> tuple[str, ...]:
    """The headings of a page, what it captions, and the terms that it defines at an anchor: each once."""
    found: dict[str, None] = {}
    for node in tree.css(_HEADINGS):
        text = node.text()[: 4 * LONGEST_HEADING]
        if node.tag == "dt":
            text = text.partition("(")[0]  # of a function its name
        if text := " ".join(text.split())[:LONGEST_HEADING].rstrip(_PERMALINK):
            found[_storable(text)] = None
            if len(found) >= MOST_HEADINGS:
                break
    return tuple(found)


def _storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _directives(attributes: dict[str, str | None], product: str) -> set[str]:
    name = (attributes.get("name") or "").strip().lower()
    if name != "robots" and not (name.startswith(product) and product_of(name) == product):
        return set()
    return set((attributes.get("content") or "").lower().replace(",", " ").split())


def _refresh(attributes: dict[str, str | None]) -> list[tuple[str, PageKind]]:
    """The page that a `refresh` leads to."""
    if (attributes.get("http-equiv") or "").lower() != "refresh":
        return []
    found = _REFRESH.match(attributes.get("content") or "")
    href = found[found.lastindex or 0].strip() if found else ""
    return [(href, PageKind.PAGE)] if href else []


def _link_element(rel: list[str], href: str, attributes: dict[str, str | None]) -> list[tuple[str, PageKind]]:
    if "next" in rel:
        return [(href, PageKind.PAGE)]
    kind = (attributes.get("type") or "").lower()
    return [(href, PageKind.FEED)] if "alternate" in rel and kind.startswith(FEED_TYPES) else []


def _title_in_body(tree: LexborHTMLParser) -> str:
    """A title that a broken head left in the body; the titles of pictures do not count."""
    titles = tree.tags("title")
    if not titles:
        return ""
    of_pictures = {node.mem_id for node in tree.css("svg title")}
    return next((title for node in titles if node.mem_id not in of_pictures and (title := _one_line(node))), "")


def _first_heading(tree: LexborHTMLParser) -> str:
    heading = tree.css_first("h1")
    if heading is None:
        return ""
    return " ".join("".join(map(_heading_text, heading.traverse(include_text=True))).split())[:MAX_TITLE]


def _heading_text(node: LexborNode) -> str:
    if node.tag == "br":
        return " "
    around = node.parent.tag if node.tag == "-text" and node.parent is not None else None
    if around is None or around in _NO_HEADING:
        return ""
    text = node.text(deep=False)
    return f" {text} " if around in _APART else text


def _one_line(node: LexborNode) -> str:
    return " ".join(node.text().split())[:MAX_TITLE]


def _language(tree: LexborHTMLParser) -> str:
    """What the root declares, or the innermost part of the page that holds most of its text."""
    root = tree.root
    attributes = {} if root is None else root.attributes
    own = attributes.get("lang") or attributes.get("xml:lang") or ""
    parts = tree.css("[lang]")
    if len(parts) <= bool(attributes.get("lang")):  # so it is on most pages
        return own
    others = [node for node in parts if node.tag in _PARTS and (node.attributes.get("lang") or own) != own]
    if others and tree.body is not None:
        most = _visible_size(tree.body) / 2
        for node in others[:_MOST_PARTS]:
            if _visible_size(node) > most:
                own = node.attributes.get("lang") or own
    return own


def _visible_size(node: LexborNode) -> int:
    return len(node.text()) - sum(len(hidden.text()) for hidden in node.css("script,style,template"))
