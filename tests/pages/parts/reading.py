"""Reading a page by a rule, for tests."""

from __future__ import annotations

from levada.core.records import ParsedPage, RawPage
from levada.core.site_rules.visit import ReadingRule
from levada.pages.compression import unpack_text
from levada.pages.parse import parse_page

__all__ = ["read", "shown"]


def read(
    body: bytes | str, kind: str = "text/html", rule: ReadingRule | None = None, known: bytes | None = None
) -> ParsedPage:
    encoded = body.encode() if isinstance(body, str) else body
    return parse_page(RawPage("http://a.test/page", encoded, kind, known_text=known, rule=rule))


def shown(body: bytes | str, kind: str = "text/html", rule: ReadingRule | None = None) -> str:
    """The text that is stored; "" if none is."""
    packed = read(body, kind, rule).content_zstd
    return unpack_text(packed).decode() if packed else ""
