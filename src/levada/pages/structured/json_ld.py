"""JSON-LD: the scripts of a page as items. Broken JSON is mended where what was meant is plain.

References by `@id` are followed inside a page: an item stands once in full, in the first that refers to it, and
elsewhere with its type and name. So a cycle ends, and nothing grows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import unescape
from typing import Any

from levada.core.structured import Item
from levada.pages.structured.building import DEEPEST, MOST_VALUES, Builder, Limits

MOST_SCRIPTS = 30
MOST_BYTES = 500_000  # of all scripts of a page
_SPACES = " \t\r\n\f;\ufeff"
_BEFORE = ("<!--", "//<![CDATA[", "// <![CDATA[", "/*<![CDATA[*/", "/* <![CDATA[ */", "<![CDATA[")
_AFTER = ("//-->", "-->", "//]]>", "// ]]>", "/*]]>*/", "/* ]]> */", "]]>")
# Strings are matched whole, so that what looks like a comment or a comma in one stays. What has no end is matched to
# the end of the script, and a row of commas at once: each character is read once.
_LOOSE = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*+(?:"|\Z))|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|//[^\n]*+|(?P<commas>,[\s,]*+)(?P<end>[\]}])?""",
    re.DOTALL,
)
_CONTAINERS = ("@graph", "@list", "@set")


def read_json_ld(scripts: Iterable[str], limits: Limits) -> list[Item]:
    """The items of the scripts, those first that no other refers to."""
    nodes: list[dict[str, Any]] = []
    left = MOST_BYTES
    for number, script in enumerate(scripts, 1):
        if number > MOST_SCRIPTS or len(script) > left:
            limits.note(f"JSON-LD {number} is left out: a page may have {MOST_SCRIPTS}, and {MOST_BYTES:,} characters")
            break
        left -= len(script)
        try:
            found = _parsed(script)
        except (ValueError, RecursionError) as error:
            said = error.args[0] if error.args and isinstance(error.args[0], str) else "it cannot be read"
            limits.note(f"JSON-LD {number} is no JSON: {'it is nested too deeply' if _is_deep(error) else said[:200]}")
            continue
        nodes += _top_nodes(found)
    return _Graph(nodes, limits).items()


def _is_deep(error: Exception) -> bool:
    return isinstance(error, RecursionError)


def _parsed(script: str) -> Any:
    """The value of a script. Numbers stay as they are written: a price is exact."""
    text = script.strip(_SPACES)
    if not text:
        return None
    try:
        return _loads(text)
    except ValueError as error:
        text = _unwrapped(text)
        for mended in (_mended(text), _mended(unescape(text))):
            try:
                return _loads(mended)
            except ValueError:
                pass
        raise error


def _unwrapped(text: str) -> str:
    """Without the marks of a comment or of CDATA, by which pages hide scripts from browsers of long ago."""
    for mark in _BEFORE:
        text = text.removeprefix(mark)
    for mark in _AFTER:
        text = text.removesuffix(mark)
    return text.strip(_SPACES)


def _loads(text: str) -> Any:
    return json.loads(text, strict=False, parse_float=str, parse_int=str, parse_constant=str)


def _mended(text: str) -> str:
    """Without comments, and without commas before a closing bracket."""
    return _LOOSE.sub(lambda found: found["text"] or found["end"] or found["commas"] or "", text)


def _top_nodes(found: Any) -> list[dict[str, Any]]:
    """The objects of a script: it may be one, a list of some, or a graph."""
    nodes: list[dict[str, Any]] = []
    waiting, steps = [found], 0
    while waiting and steps < 10_000:
        each, steps = waiting.pop(), steps + 1
        if isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, dict):
            graph = each.get("@graph")
            if isinstance(graph, list | dict):
                waiting.append(graph)
            if graph is None or _types(each):
                nodes.append(each)
    return nodes


def _types(node: dict[str, Any]) -> list[str]:
    """Its types; the context of schema.org allows them without the @ too."""
    found = node.get("@type", node.get("type"))
    listed = found if isinstance(found, list) else [found]
    return [each for each in listed if isinstance(each, str)]


def _id(node: dict[str, Any]) -> str:
    found = node.get("@id", node.get("id") if "@type" not in node else None)
    return found if isinstance(found, str) else ""


def _is_reference(node: dict[str, Any]) -> bool:
    return "@id" in node and len(node) == 1


class _Graph:
    """The objects of a page, and which of them are told already."""

    def __init__(self, nodes: list[dict[str, Any]], limits: Limits) -> None:
        self._nodes = nodes
        self._limits = limits
        self._by_id: dict[str, dict[str, Any]] = {}
        for node in nodes:
            if id := _id(node):
                self._by_id.setdefault(id, node)
        self._told: set[int] = set()

    def items(self) -> list[Item]:
        referred = self._referred()
        roots = [node for node in self._nodes if _id(node) not in referred or self._by_id[_id(node)] is not node]
        items = []
        for node in roots + self._nodes:  # the second time those that refer to each other in a circle
            if id(node) not in self._told and _is_item(node):
                builder = self._builder(node, 0, "json-ld")
                if builder is not None and (builder.types or builder.properties):
                    items.append(builder.item())
        return items

    def _referred(self) -> set[str]:
        """The ids that objects of the page refer to, from within others."""
        found: set[str] = set()
        if not self._by_id:
            return found
        waiting: list[Any] = [
            value
            for node in self._nodes
            for key, value in node.items()
            if isinstance(value, dict | list) and key != "@graph"
        ]
        while waiting:
            each = waiting.pop()
            if isinstance(each, list):
                waiting += each
            elif isinstance(each, dict):
                if (id := each.get("@id")) and isinstance(id, str) and id in self._by_id:
                    found.add(id)
                waiting += [value for value in each.values() if isinstance(value, dict | list)]
        return found

    def _builder(self, node: dict[str, Any], depth: int, source: str = "") -> Builder | None:
        if depth > DEEPEST:
            self._limits.note(f"items more than {DEEPEST} deep are left out")
            return None
        if not self._limits.take_item():
            return None
        self._told.add(id(node))
        builder = Builder(_types(node), self._limits, source=source, id=_id(node))
        for key, value in node.items():
            if not key.startswith("@") and not (key in ("type", "id") and "@type" not in node):
                self._add(builder, key, value, depth)
        return builder

    def _add(self, builder: Builder, name: str, value: Any, depth: int) -> None:
        values = value if isinstance(value, list) else [value]
        for each in values[: MOST_VALUES + 1]:
            if isinstance(each, bool):
                builder.add(name, "true" if each else "false")
            elif isinstance(each, str):
                builder.add(name, each)
            elif isinstance(each, dict):
                self._add_object(builder, name, each, depth)

    def _add_object(self, builder: Builder, name: str, each: dict[str, Any], depth: int) -> None:
        if "@value" in each:
            if isinstance(each["@value"], str):
                builder.add(name, each["@value"])
            return
        for container in _CONTAINERS:
            if container in each and depth <= DEEPEST:
                self._add(builder, name, each[container], depth + 1)
                return
        node = self._by_id.get(_id(each), each) if _is_reference(each) else each
        if node is each and _is_reference(each):
            builder.add(name, _id(each))  # it is described on another page
        elif id(node) in self._told:
            if self._limits.take_item():
                builder.add(name, self._mention(node))
        elif (inner := self._builder(node, depth + 1)) is not None:
            builder.add(name, inner)

    def _mention(self, node: dict[str, Any]) -> Builder:
        """An item that is told elsewhere: its type and its name."""
        builder = Builder(_types(node), self._limits, id=_id(node))
        if isinstance(title := node.get("name"), str):
            builder.add("name", title)
        return builder


def _is_item(node: dict[str, Any]) -> bool:
    return any(not key.startswith("@") or key == "@type" for key in node)
