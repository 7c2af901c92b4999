"""Selecting and removing elements of an HTML page, by CSS and XPath.

XPath is evaluated by libxml2 on a copy of the tree that lexbor built, so both languages see the page as a browser
does (with the `tbody` that nobody writes), and libxml2 never parses bytes from outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from levada.core.selectors import Language, compiled_xpath
from levada.core.structured import StructuredData
from levada.pages.text import text_of_element, tidy_lines

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ODD_NAME = "_"  # of an element that XML cannot name


def remove_elements(tree: LexborHTMLParser, selectors: Sequence[tuple[Language, str]]) -> tuple[int, ...]:
    """Remove what the selectors find; how many elements each found."""
    counts = []
    for language, written in selectors:
        found = [each for each in _found(tree, language, written) if isinstance(each, LexborNode)]
        inner: set[int] = set()  # went with the outer one
        for node in found:
            if node.mem_id in inner or node.tag in ("html", "body"):
                continue
            inner.update(each.mem_id for each in node.traverse())
            node.decompose(True)
        counts.append(len(found))
    return tuple(counts)


def selected_text(
    tree: LexborHTMLParser, selectors: Sequence[tuple[Language, str]], data: StructuredData
) -> tuple[bytes, tuple[int, ...]]:
    """The text of what the selectors find, in their order, and how many places each found. The tree is modified."""
    copy = _Copy(tree) if any(language is Language.XPATH for language, _ in selectors) else None
    found = [
        data.values(written) if language is Language.PROPERTY else list(_found(tree, language, written, copy))
        for language, written in selectors
    ]
    lines: list[bytes] = []
    taken: set[int] = set()
    for each in (each for some in found for each in some):
        if isinstance(each, str):
            lines.append(tidy_lines(each.encode("utf-8", "replace")))
        elif each.mem_id not in taken:
            taken.update(node.mem_id for node in each.traverse())
            lines.append(text_of_element(each))
    return b"\n".join(line for line in lines if line), tuple(map(len, found))


def _found(
    tree: LexborHTMLParser, language: Language, written: str, copy: _Copy | None = None
) -> Iterator[LexborNode | str]:
    if language is Language.CSS:
        yield from tree.css(written)
    elif language is Language.XPATH:
        yield from (copy or _Copy(tree)).found(written)


class _Copy:
    """The elements and texts of a page as a tree of lxml."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        from lxml import etree

        self._nodes: dict[Any, LexborNode] = {}  # keeps the elements alive: lxml would make others otherwise
        builder = etree.TreeBuilder()
        open_tags: list[str] = []
        node: LexborNode | None = tree.root
        while node is not None:
            tag = node.tag or ""
            if tag == "-text":
                builder.data(_NOT_IN_XML.sub("", node.text(deep=False)))
            elif not tag.startswith(("-", "!")):
                name = tag if _NAME.fullmatch(tag) else _ODD_NAME
                self._nodes[builder.start(name, _attributes(node))] = node
                open_tags.append(name)
                if (inner := node.child) is not None:
                    node = inner
                    continue
                builder.end(open_tags.pop())
            while open_tags and node.next is None and node.parent is not None:
                node = node.parent
                builder.end(open_tags.pop())
            node = node.next if open_tags else None
        self._root = builder.close() if self._nodes else None

    def found(self, written: str) -> Iterator[LexborNode | str]:
        if self._root is None:
            return
        result = compiled_xpath(written)(self._root)
        if isinstance(result, list):
            for each in result:
                if isinstance(each, str):
                    yield each
                elif (node := self._nodes.get(each)) is not None:
                    yield node
        elif isinstance(result, float):
            yield f"{result:.15g}"
        elif isinstance(result, bool):
            yield str(result).lower()
        elif result:
            yield str(result)


def _attributes(node: LexborNode) -> dict[str, str]:
    return {name: _NOT_IN_XML.sub("", value or "") for name, value in node.attributes.items() if _NAME.fullmatch(name)}
