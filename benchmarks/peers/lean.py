"""The plain reading of a page that both programs share: lexbor's tree, title, text, links, and the digest of the
text.
"""

from __future__ import annotations

from levada.core.hashing import content_digest
from levada.core.records import PageKind, ParsedPage, RawPage
from levada.pages.html import follow_links, read_head, tree_of
from levada.pages.links import LinkCollector
from levada.pages.parse import ParseLimits
from levada.pages.urls import site_of

UNREAD = ["script", "style", "noscript"]


def lean_parse(page: RawPage, limits: ParseLimits | None = None) -> ParsedPage:
    tree = tree_of(page.body)
    head = read_head(tree, "levada")
    links = LinkCollector(page.url, site_of(page.url), max_bytes=1 << 24, max_refused=20, max_length=2_000)
    follow_links(tree, head, links)
    tree.strip_tags(UNREAD)
    text = tree.body.text(separator=" ", strip=True) if tree.body else ""
    return ParsedPage(
        PageKind.PAGE,
        head.title,
        text_digest=content_digest(text.encode("utf-8", "replace")),
        links=links.links(),
        marked=links.marked(),
    )
