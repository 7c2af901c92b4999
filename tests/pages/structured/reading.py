"""What the parser finds in a page, as plain values."""

from __future__ import annotations

import json
from typing import Any

from levada.core.records import ParsedPage, RawPage
from levada.core.structured import Item, StructuredData, unpack_data
from levada.pages.parse import parse_page

__all__ = ["data_of", "json_ld", "page_with", "parsed", "plain"]

URL = "https://shop.example/things/thermos"


def page_with(head: str = "", body: str = "") -> bytes:
    return f"<!doctype html><title>Thermos</title>{head}<p>Keeps tea hot for a day.</p>{body}".encode()


def json_ld(*scripts: Any) -> str:
    """Scripts of a page: text as it is, and anything else as JSON."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in scripts]
    return "".join(f'<script type="application/ld+json">{text}</script>' for text in texts)


def parsed(html: bytes) -> ParsedPage:
    return parse_page(RawPage(URL, html, "text/html; charset=utf-8"))


def data_of(head: str = "", body: str = "") -> StructuredData:
    found = parsed(page_with(head, body))
    assert found.reason is None
    return unpack_data(found.data)


def plain(item: Item) -> dict[str, Any]:
    """An item as a dictionary, with a single value in place of a tuple of one."""
    found: dict[str, Any] = {"@type": " ".join(item.type)} if item.type else {}
    for name, values in item.properties.items():
        shown = [plain(each) if isinstance(each, Item) else each for each in values]
        found[name] = shown[0] if len(shown) == 1 else shown
    return found
