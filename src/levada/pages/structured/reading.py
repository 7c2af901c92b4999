"""Reading of all structured data of a page."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urljoin
from zlib import crc32

import msgspec
from selectolax.lexbor import LexborHTMLParser

from levada.core.structured import Item, StructuredData
from levada.pages.structured.building import LONGEST_VALUE, Limits
from levada.pages.structured.elements import MICRODATA, RDFA, read_elements
from levada.pages.structured.json_ld import read_json_ld
from levada.pages.structured.meta import read_meta
from levada.pages.structured.offers import offers_of

_JSON_LD = "application/ld+json"
_MOST_ATTRIBUTES = 50_000
_NOTHING = StructuredData()


def read_data(
    tree: LexborHTMLParser, html: bytes, meta: Sequence[tuple[str, str]], url: str, base: str = ""
) -> StructuredData:
    """The structured data of a page, from its tree, its bytes and its meta elements as names and contents.

    Only a page that names schema.org has more than meta elements: one search of its bytes is all that others cost.
    """
    names_schema = b"schema.org" in html
    if not names_schema and not meta:
        return _NOTHING
    limits = Limits()
    items: list[Item] = []
    if names_schema and (scripts := _scripts(tree)):
        items += read_json_ld(scripts, limits)

    def absolute(written: str) -> str:
        if written.startswith(("https://", "http://")):
            return written
        try:
            return urljoin(_joined(url, base), written[: 4 * LONGEST_VALUE].strip()) if written else ""
        except ValueError:
            return written

    for syntax, begins, holds in ((MICRODATA, b"itemscope", b"itemprop"), (RDFA, b"typeof=", b"property=")):
        if not names_schema or begins not in html:
            continue
        if html.count(begins) + html.count(holds) > _MOST_ATTRIBUTES:  # even to list the elements takes too long
            limits.note(f"more than {_MOST_ATTRIBUTES:,} attributes of {syntax.source}: all of them are left out")
        else:
            items += read_elements(tree, syntax, absolute, limits)
    if meta:
        items += read_meta(meta, limits)
    return StructuredData(tuple(items), offers_of(items), limits.notes())


def _joined(url: str, base: str) -> str:
    return urljoin(url, base) if base else url


def _scripts(tree: LexborHTMLParser) -> list[str]:
    return [
        node.text()
        for node in tree.tags("script")
        if (node.attributes.get("type") or "").partition(";")[0].strip().lower() == _JSON_LD
    ]


def offers_mark(data: StructuredData) -> bytes:
    """Bytes that are the same as long as a page describes the same kinds of things, at the same offers.

    Other properties are left out: pages write the time, counters and tokens into them.
    """
    if not data.items:
        return b""
    types = sorted({name for item in data.items for name in item.type})
    said = [(each.price, each.currency, each.availability) for each in data.offers]
    return crc32(msgspec.msgpack.encode((types, said))).to_bytes(4, "big")
