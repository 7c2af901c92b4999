"""Microdata and RDFa: items from the attributes of elements.

An element belongs to the nearest element around it that begins an item. Microdata follows the HTML standard with
`itemref`; of RDFa it is RDFa Lite (`vocab`, `typeof`, `property`, `resource`, `prefix`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from levada.core.structured import Item
from levada.pages.structured.building import LONGEST_VALUE, Builder, Limits

MOST_ELEMENTS = 5_000  # of a page
_MOST_STEPS = 100_000  # from elements to those around them
_MOST_TEXT = 2_000_000  # characters of elements in elements, before they are cut
_LINKS = frozenset(("a", "area", "link"))
_SOURCES = frozenset(("audio", "embed", "iframe", "img", "source", "track", "video"))
Absolute = Callable[[str], str]


class _Syntax(NamedTuple):
    """The names of the attributes."""

    source: str
    selector: str
    item: str  # begins an item
    type: str
    property: str
    id: str


MICRODATA = _Syntax("microdata", "[itemscope],[itemprop]", "itemscope", "itemtype", "itemprop", "itemid")
RDFA = _Syntax("rdfa", "[typeof],[property]", "typeof", "typeof", "property", "resource")


def read_elements(tree: LexborHTMLParser, syntax: _Syntax, absolute: Absolute, limits: Limits) -> list[Item]:
    """The items that are in no other, in the order of the page."""
    nodes = list({node.mem_id: node for node in tree.css(syntax.selector)}.values())
    if len(nodes) > MOST_ELEMENTS:
        limits.note(f"more than {MOST_ELEMENTS:,} elements with {syntax.source}: the others are left out")
        del nodes[MOST_ELEMENTS:]
    return _Reading(tree, syntax, absolute, limits).items(nodes)


class _Reading:
    def __init__(self, tree: LexborHTMLParser, syntax: _Syntax, absolute: Absolute, limits: Limits) -> None:
        self._tree = tree
        self._syntax = syntax
        self._absolute = absolute
        self._limits = limits
        self._builders: dict[int, Builder] = {}  # by element
        self._referred: dict[str, Builder] = {}  # by the id of an element: the item that refers to it
        self._steps = _MOST_STEPS
        self._text = _MOST_TEXT

    def items(self, nodes: list[LexborNode]) -> list[Item]:
        attributes = [node.attributes for node in nodes]
        for node, each in zip(nodes, attributes, strict=True):
            if self._syntax.item in each and self._limits.take_item():
                self._builders[node.mem_id] = self._begun(each)
        tops: list[Builder] = []
        inside: dict[int, Builder] = {}  # by item: the one it was added to
        for node, each in zip(nodes, attributes, strict=True):
            own = self._builders.get(node.mem_id)
            names = (each.get(self._syntax.property) or "").split()[:10]
            owner = self._owner(node) if names else None
            if owner is not None and not (own is not None and _is_around(own, owner, inside)):
                self._add(owner, names, node, each, own)
                if own is not None:
                    inside[id(own)] = owner
            elif own is not None:
                tops.append(own)
        return [top.item() for top in tops if top.types or top.properties]

    def _begun(self, attributes: dict[str, str | None]) -> Builder:
        id = attributes.get(self._syntax.id) or ""
        types = (attributes.get(self._syntax.type) or "").split()
        builder = Builder(types, self._limits, source=self._syntax.source, id=id)
        for each in (attributes.get("itemref") or "").split()[:50]:
            self._referred.setdefault(each, builder)
        return builder

    def _owner(self, node: LexborNode) -> Builder | None:
        """The item that a property of this element belongs to."""
        around: LexborNode | None = node
        while around is not None and self._steps > 0:
            self._steps -= 1
            if around is not node and (found := self._builders.get(around.mem_id)) is not None:
                return found
            if self._referred and (id := around.attributes.get("id")) in self._referred:
                return self._referred[str(id)]
            around = around.parent
        if self._steps <= 0:
            self._limits.note(f"{self._syntax.source} is nested too deeply: the rest is left out")
        return None

    def _add(
        self,
        owner: Builder,
        names: list[str],
        node: LexborNode,
        attributes: dict[str, str | None],
        own: Builder | None,
    ) -> None:
        if own is not None:
            own.source = ""
        value = own if own is not None else self._value(node, attributes)
        for name in names:
            owner.add(name, value)

    def _value(self, node: LexborNode, attributes: dict[str, str | None]) -> str:
        tag = node.tag
        content = attributes.get("content")
        if content is not None:
            return content
        if tag in _LINKS:
            return self._absolute(attributes.get("href") or "")
        if tag in _SOURCES:
            return self._absolute(attributes.get("src") or "")
        for name in ("datetime", "value") if tag in ("data", "meter", "time") else ():
            if written := attributes.get(name):
                return written
        if tag == "object":
            return self._absolute(attributes.get("data") or "")
        if self._text <= 0:
            self._limits.note(f"{self._syntax.source} repeats too much text: the rest is left out")
            return ""
        text = node.text(separator=" ")
        self._text -= len(text)
        return text[: 4 * LONGEST_VALUE]


def _is_around(inner: Builder, outer: Builder, inside: dict[int, Builder]) -> bool:
    """Whether the outer item is the inner one, or in it: an `itemref` can lead in a circle."""
    each: Builder | None = outer
    while each is not None:
        if each is inner:
            return True
        each = inside.get(id(each))
    return False
