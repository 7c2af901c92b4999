"""Conditions on a change: words that came or went, its size, and numbers such as prices. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from levada.core.records import DiffLine
from levada.core.subscriptions import Conditions
from levada.pages.folding import words
from levada.pages.numbers import numbers, prices


def holds(conditions: Conditions, url: str, lines: Callable[[], Sequence[DiffLine]]) -> bool:
    """Whether every condition that is given holds; `lines` are all that came and went, asked for only if needed."""
    if not url.startswith(conditions.prefix):
        return False
    if conditions == Conditions(prefix=conditions.prefix):
        return True
    changed = lines()
    came, went = _words(changed, "+"), _words(changed, "-")
    if conditions.came and not _any_in(conditions.came, came - went):
        return False
    if conditions.went and not _any_in(conditions.went, went - came):
        return False
    if came.total() + went.total() < conditions.least_words:
        return False
    if conditions.below is None and conditions.above is None:
        return True
    texts = [each.text for each in changed if each.sign == "+"]
    found = list(numbers(texts, conditions.near) if conditions.near else prices(texts))
    if not found:
        return False
    is_low = conditions.below is None or min(found) < conditions.below
    return is_low and (conditions.above is None or max(found) > conditions.above)


def _words(lines: Iterable[DiffLine], sign: str) -> Counter[str]:
    """The words that differ in lines of this sign."""
    pieces = (text for each in lines if each.sign == sign for text, differs in each.pieces if differs)
    return Counter(word for text in pieces for word in words(text))


def _any_in(groups: Iterable[str], there: Counter[str]) -> bool:
    return any(set(words(group)) <= there.keys() for group in groups)
