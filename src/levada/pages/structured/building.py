"""Building of items within limits, from names and values as pages write them."""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape

from levada.core.structured import Item

MOST_ITEMS = 400  # of a page, with those in others
MOST_PROPERTIES = 80  # of an item
MOST_VALUES = 100  # of a property
DEEPEST = 8
LONGEST_VALUE = 1_000  # characters
LONGEST_NAME = 120
MOST_TEXT = 200_000  # characters of all values of a page
MOST_NOTES = 10

_SCHEMA = re.compile(r"(?:https?://(?:www\.)?schema\.org/|schema:)", re.IGNORECASE)
_ENUMERATED = re.compile(r"https?://(?:www\.)?schema\.org/[A-Za-z]{1,60}")
_DATA_VOCABULARY = re.compile(r"https?://(?:rdf\.)?data-vocabulary\.org/#?", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});", re.IGNORECASE)


class Limits:
    """What may still be kept of one page, and the notes on what was not."""

    def __init__(self) -> None:
        self.items = MOST_ITEMS
        self.text = MOST_TEXT
        self._notes: dict[str, None] = {}

    def note(self, sentence: str) -> None:
        if len(self._notes) < MOST_NOTES:
            self._notes[sentence] = None

    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def take_item(self) -> bool:
        """Whether one more item may be kept."""
        if self.items <= 0:
            self.note(f"more than {MOST_ITEMS} items: the others are left out")
            return False
        self.items -= 1
        return True

    def text_of(self, value: str) -> str:
        """A value as it is kept: one line, without entities, cut at the limit."""
        if len(value) > 4 * LONGEST_VALUE:
            value = value[: 4 * LONGEST_VALUE]
        if "&" in value and _ENTITY.search(value):
            value = unescape(value)
        value = " ".join(value.split())
        if len(value) > LONGEST_VALUE:
            value = f"{value[: LONGEST_VALUE - 1]}…"
        if len(value) > self.text:
            self.note(f"more than {MOST_TEXT:,} characters: the rest is left out")
            return ""
        self.text -= len(value)
        return value if value.isascii() else value.encode("utf-8", "replace").decode()


class Builder:
    """An item while it is read."""

    def __init__(self, types: list[str], limits: Limits, *, source: str = "", id: str = "") -> None:
        self.types = tuple(dict.fromkeys(filter(None, map(short_name, types[:10]))))
        self.source = source
        self.id = id[:LONGEST_VALUE]
        self.properties: dict[str, list[str | Builder]] = {}
        self._limits = limits

    def add(self, name: str, value: str | Builder) -> None:
        """Add a value to a property; text is tidied, and nothing is added for an empty one."""
        name = short_name(name)
        if isinstance(value, str):
            value = self._limits.text_of(value)
            if value.startswith("http") and _ENUMERATED.fullmatch(value):
                value = short_name(value)
        if not name or value == "":
            return
        values = self.properties.get(name)
        if values is None:
            if len(self.properties) >= MOST_PROPERTIES:
                self._limits.note(f"more than {MOST_PROPERTIES} properties of an item: the others are left out")
                return
            values = self.properties[name] = []
        if len(values) >= MOST_VALUES:
            self._limits.note(f"more than {MOST_VALUES} values of a property: the others are left out")
        elif not isinstance(value, str) or value not in values:
            values.append(value)

    def item(self, depth: int = 0) -> Item:
        """The item as it is kept, with those in it down to the deepest that is."""
        kept: dict[str, tuple[str | Item, ...]] = {}
        for name, values in self.properties.items():
            found: list[str | Item | None] = [
                self._inner(each, depth) if isinstance(each, Builder) else each for each in values
            ]
            if some := tuple(each for each in found if each is not None):
                kept[name] = some
        return Item(self.types, kept, self.source, self.id)

    def _inner(self, each: Builder, depth: int) -> Item | None:
        if depth < DEEPEST:
            return each.item(depth + 1)
        self._limits.note(f"items more than {DEEPEST} deep are left out")
        return None


def short_name(name: str) -> str:
    """A type or property without the address of schema.org; "" for one that is too long."""
    return _short_name(name) if len(name) <= LONGEST_NAME else ""


@lru_cache(maxsize=2_000)
def _short_name(name: str) -> str:
    name = name.strip()
    if ":" in name:
        name = _DATA_VOCABULARY.sub("", _SCHEMA.sub("", name, count=1), count=1)
    return name.encode("utf-8", "replace").decode()
