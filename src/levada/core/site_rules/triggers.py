"""Triggers: what must happen on a page for a change to be told. Parsed here, and looked for in `levada.pages.parts`.

Each is a statement about one text that holds or does not: "this text is there", "a price is below 100". A trigger is
met by the version in which it begins to hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from levada.core.patterns import check_pattern

_PATTERN = "re:"
_TEXT = re.compile(r"(appears|disappears):\s*(.+)", re.DOTALL)
_NUMBER = re.compile(r"(price|number) (below|above) (\S+)(?: near (.+))?", re.DOTALL)
_FIGURE = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")
EXAMPLES = '"appears: In stock", "disappears: Sold out", "price below 100" or "number above 20 near seats"'


class TextTrigger(msgspec.Struct, frozen=True):
    """A text appears or disappears: words in a row, whatever their case and accents, or a regular expression."""

    text: str
    is_pattern: bool
    appears: bool


class NumberTrigger(msgspec.Struct, frozen=True):
    """A price, or any number in lines with the words of `near`, is below or above a limit."""

    kind: Literal["price", "number"]
    limit: float
    below: bool
    near: str = ""


def parsed_trigger(written: str) -> TextTrigger | NumberTrigger:
    """ValueError says in one sentence why this is no trigger.

    >>> parsed_trigger("price below 99.50")
    NumberTrigger(kind='price', limit=99.5, below=True, near='')
    """
    if found := _TEXT.fullmatch(written.strip()):
        return _text_trigger(found[1] == "appears", found[2])
    if found := _NUMBER.fullmatch(written.strip()):
        kind, side, figure, near = found.groups()
        if not _FIGURE.fullmatch(figure):
            raise ValueError(
                f'{figure[:50]!r} is no number: write it with a point and without grouping, as in "1299.50"'
            )
        if near and kind == "price":
            raise ValueError(f'{written[:100]!r}: near goes with "number", not with "price"')
        if near and not any(map(str.isalnum, near)):
            raise ValueError(f"there is no word in {near[:100]!r}")
        return NumberTrigger("price" if kind == "price" else "number", float(figure), side == "below", near or "")
    raise ValueError(f"{written[:100]!r} is no trigger: write {EXAMPLES}")


def _text_trigger(appears: bool, text: str) -> TextTrigger:
    if text.startswith(_PATTERN):
        pattern = text.removeprefix(_PATTERN)
        check_pattern(pattern)
        return TextTrigger(pattern, True, appears)
    if not any(map(str.isalnum, text)):
        raise ValueError(f"there is no word in {text[:100]!r}: write re: before a regular expression for signs")
    return TextTrigger(text, False, appears)


def check_triggers(written: Sequence[str]) -> None:
    """ValueError says which of them is none, and why."""
    for each in written:
        try:
            parsed_trigger(each)
        except ValueError as error:
            raise ValueError(f"trigger: {error}") from None
