"""A compiled reading rule: the selected text of a page, and what of a text is compared.

A rule is compiled once for each process, and asked only where a page has one. A selector is for one language: those
for HTML say nothing about JSON, and a page to which none applies is read as without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from levada.core.selectors import Language, compiled_jsonpath, language_of
from levada.core.site_rules.visit import ReadingRule
from levada.core.structured import StructuredData
from levada.pages.parts.elements import remove_elements, selected_text
from levada.pages.parts.ignoring import Ignoring
from levada.pages.parts.triggers import Triggers


class Selected(NamedTuple):
    """What the selectors found; `found` is how many places each of them found, in their order."""

    text: bytes
    found: tuple[int, ...]


class CompiledRule:
    def __init__(self, rule: ReadingRule) -> None:
        self._select = list(map(language_of, rule.select))
        self._remove = list(map(language_of, rule.remove))
        self.ignoring = Ignoring(rule.ignore) if rule.ignore else None
        self.triggers = Triggers(rule.trigger)
        self.selects_elements = _any_for_html(self._select)
        self.removes_elements = _any_for_html(self._remove)
        self.selects_data = _any_for_data(self._select)
        self.concerns_data = self.selects_data or _any_for_data(self._remove)
        self._selects = bool(rule.select)

    def remove(self, tree: LexborHTMLParser) -> tuple[int, ...]:
        """Take the elements that do not count out of the tree; how many each selector took."""
        return remove_elements(tree, self._remove)

    def select(self, tree: LexborHTMLParser, data: StructuredData) -> Selected:
        """The text of the elements, and of the properties of the structured data, that count."""
        return Selected(*selected_text(tree, self._select, data))

    def remove_data(self, values: Sequence[Any]) -> tuple[int, ...]:
        """Take what does not count out of values of JSON."""
        return _remove_from(values, [path for language, path in self._remove if language is Language.JSONPATH])

    def select_data(self, values: Sequence[Any]) -> list[Any]:
        """The values of JSON that count."""
        return _selected_in(values, [path for language, path in self._select if language is Language.JSONPATH])

    def compared_text(self, text: bytes) -> bytes:
        """What of a text counts when it is compared with the version before."""
        return text if self.ignoring is None else self.ignoring.compared_text(text)

    def compared_title(self, title: str) -> str:
        """A title counts like a line of the text; beside selected parts it does not count."""
        if self._selects:
            return ""
        return title if self.ignoring is None else self.ignoring.compared_text(title.encode()).decode()


def _any_for_html(selectors: Sequence[tuple[Language, str]]) -> bool:
    return any(language is not Language.JSONPATH for language, _ in selectors)


def _any_for_data(selectors: Sequence[tuple[Language, str]]) -> bool:
    return any(language is Language.JSONPATH for language, _ in selectors)


def _selected_in(values: Sequence[Any], paths: Sequence[str]) -> list[Any]:
    """What the paths find, in their order."""
    return [match.obj for path in paths for value in values for match in compiled_jsonpath(path).finditer(value)]


def _remove_from(values: Sequence[Any], paths: Sequence[str]) -> tuple[int, ...]:
    """Remove what the paths find; how many values each found."""
    counts = []
    for path in paths:
        matches = [match for value in values for match in compiled_jsonpath(path).finditer(value)]
        entries: dict[int, tuple[list[Any], set[int]]] = {}  # of lists, which move when one is taken out
        for match in matches:
            if match.parent is None:
                continue
            around, key = match.parent.obj, match.parts[-1]
            if isinstance(around, dict):
                around.pop(key, None)
            else:
                entries.setdefault(id(around), (around, set()))[1].add(key)
        for around, places in entries.values():
            for place in sorted(places, reverse=True):
                del around[place]
        counts.append(len(matches))
    return tuple(counts)


@lru_cache(maxsize=1_000)
def compiled_rule(rule: ReadingRule) -> CompiledRule:
    return CompiledRule(rule)
