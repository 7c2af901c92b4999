"""Triggers of a rule on a page: which of them hold for a text, and whether one begins to hold.

What held for the version before is kept in the page's digest, a bit for each trigger, so that no older text is read.
Triggers look at what is compared: a text that is ignored cannot meet one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from levada.core.patterns import compiled
from levada.core.site_rules.triggers import NumberTrigger, TextTrigger, parsed_trigger
from levada.pages.folding import words
from levada.pages.numbers import numbers, prices

Statement = Callable[[str], bool]


class Triggers:
    """The triggers of one rule, compiled.

    >>> triggers = Triggers(["appears: in stock", "price below 100"])
    >>> triggers.hold("In Stock: 120 EUR")
    (True, False)
    """

    def __init__(self, written: Sequence[str]) -> None:
        self._statements = [_statement(parsed_trigger(each)) for each in written]
        self._of_nothing = self.states(b"")

    def hold(self, text: str) -> tuple[bool, ...]:
        """Which of them hold for a text, in their order."""
        return tuple(statement(text) for statement in self._statements)

    def states(self, text: bytes) -> bytes:
        """The same as bits; b"" if there are no triggers."""
        if not self._statements:
            return b""
        bits = sum(1 << place for place, holds in enumerate(self.hold(text.decode("utf-8", "replace"))) if holds)
        return bits.to_bytes((len(self._statements) + 7) // 8, "big")

    def are_met(self, states: bytes, before: bytes) -> bool:
        """Whether one holds that did not hold before; without a version before, as if that were empty.

        Always if there are no triggers.
        """
        held = before if len(before) == len(states) else self._of_nothing
        return not self._statements or bool(int.from_bytes(states, "big") & ~int.from_bytes(held, "big"))


def _statement(trigger: TextTrigger | NumberTrigger) -> Statement:
    if isinstance(trigger, NumberTrigger):
        return _number_statement(trigger)
    is_there = _pattern(trigger.text) if trigger.is_pattern else _phrase(trigger.text)
    return is_there if trigger.appears else lambda text: not is_there(text)


def _pattern(written: str) -> Statement:
    search = compiled(written).search
    return lambda text: search(text.encode("utf-8", "replace")) is not None


def _phrase(text: str) -> Statement:
    wanted = _in_a_row(text)
    if wanted.isspace():  # signs that no search knows as letters
        return lambda text_of_page: text in text_of_page
    return lambda text_of_page: any(wanted in _in_a_row(line) for line in text_of_page.split("\n"))


def _in_a_row(line: str) -> str:
    """The words of a line, a space before and after each."""
    return f" {' '.join(words(line))} "


def _number_statement(trigger: NumberTrigger) -> Statement:
    def holds(text: str) -> bool:
        lines = text.split("\n")
        found = prices(lines) if trigger.kind == "price" else numbers(lines, trigger.near)
        return any(each < trigger.limit if trigger.below else each > trigger.limit for each in found)

    return holds
