"""The keys of a rule that say what counts on a page: checked when they are set, and handed to the parser child."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from levada.core.patterns import check_pattern
from levada.core.selectors import Language, check_selector, language_of
from levada.core.site_rules.rendering import rendered_how
from levada.core.site_rules.visit import ReadingRule
from levada.core.suggestions import near_names

if TYPE_CHECKING:
    from levada.core.site_rules.section import SiteSettings

DATES, NUMBERS, ORDER, REPEATS = "dates", "numbers", "order", "repeats"
IGNORED_KINDS = (DATES, NUMBERS, ORDER, REPEATS)
"""What `ignore` knows by name: dates and times, numbers, the order of lines, and lines that stand there again."""
PATTERN = "re:"
WHOLE_TEXTS = frozenset(("select", "remove", "ignore", "trigger"))
"""Keys whose texts may have commas: one that is typed is one entry."""


def check_selectors(key: str, selectors: Sequence[str]) -> None:
    for selector in selectors:
        try:
            check_selector(selector)
            if key != "select" and language_of(selector)[0] is Language.PROPERTY:
                raise ValueError(f"{selector!r} is nothing on the page that could be taken out: data: is for select")
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None


def check_ignored(ignored: Sequence[str]) -> None:
    for each in ignored:
        if each.startswith(PATTERN):
            try:
                check_pattern(each.removeprefix(PATTERN))
            except ValueError as error:
                raise ValueError(f"ignore: {error}") from None
        elif each not in IGNORED_KINDS and each.lower().rstrip("s") in _SINGULAR:
            raise ValueError(f"ignore: {each!r} is a word that it does not know: {near_names(each, IGNORED_KINDS)}")


_SINGULAR = frozenset(kind.rstrip("s") for kind in IGNORED_KINDS)


def reading_rule(keys: SiteSettings) -> ReadingRule | None:
    """What goes to the parser child; None where nothing is said."""
    rule = ReadingRule(
        keys.select or (), keys.remove or (), keys.ignore or (), trigger=keys.trigger or (), rendered=rendered_how(keys)
    )
    return rule if rule != _NOTHING else None


_NOTHING = ReadingRule()
