"""What does a filter leave possible for each field?

A filter becomes alternatives, each with what it allows per field: some values, or a range, or the beginning of a
text. Whatever is not understood narrows nothing, so that no document is ever missed. Alternatives are multiplied
out up to a limit; what would go beyond it narrows nothing either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from levada.sharding.asked import AllOf, AnyOf, Condition, Filter, NoneOf
from levada.sharding.values import AFTER, MISSING, encoded, kind_range, ordered_text

__all__ = ["MOST_ALTERNATIVES", "Allowed", "Alternative", "Reader", "allowed_by", "alternatives"]

MOST_ALTERNATIVES = 64
_MOST_LEVELS = 100


class Allowed(msgspec.Struct, frozen=True):
    """Of a field: `values`, or encodings from `low` until before `high`."""

    values: tuple[Any, ...] | None = None
    low: bytes = b""
    high: bytes = AFTER

    def both(self, other: Allowed) -> Allowed:
        """What both allow."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        if self.values is None and other.values is None:
            return Allowed(None, low, high)
        if self.values is not None and other.values is not None:
            known = {encoded(value) for value in other.values}
            return Allowed(tuple(value for value in self.values if encoded(value) in known))
        values = self.values if self.values is not None else other.values
        return Allowed(tuple(value for value in values or () if low <= encoded(value) < high))


Alternative: TypeAlias = Mapping[str, Allowed]
Reader: TypeAlias = Callable[[Condition], Allowed | None]


def alternatives(asked: Filter | None, reader: Reader | None = None) -> tuple[Alternative, ...]:
    """A document that the filter finds is allowed by one of these; none: nothing can be found.

    `reader` says what a condition allows; `allowed_by` unless told otherwise.
    """
    return ({},) if asked is None else _of(asked, 0, reader or allowed_by)


def _of(asked: Filter, level: int, reader: Reader) -> tuple[Alternative, ...]:
    if level > _MOST_LEVELS or isinstance(asked, NoneOf):
        return ({},)
    if isinstance(asked, Condition):
        allowed = reader(asked)
        return ({},) if allowed is None else ({asked.field: allowed},)
    if isinstance(asked, AnyOf):
        either = [each for one in asked.of for each in _of(one, level + 1, reader)]
        return tuple(either) if 0 < len(either) <= MOST_ALTERNATIVES else ({},)
    return _together(asked, level, reader)


def _together(asked: AllOf, level: int, reader: Reader) -> tuple[Alternative, ...]:
    found: tuple[Alternative, ...] = ({},)
    for one in asked.of:
        more = _of(one, level + 1, reader)
        if len(found) * len(more) <= MOST_ALTERNATIVES:
            found = tuple(_both(this, that) for this in found for that in more)
    return found


def _both(one: Alternative, other: Alternative) -> Alternative:
    joined = dict(one)
    for field, allowed in other.items():
        joined[field] = joined[field].both(allowed) if field in joined else allowed
    return joined


def allowed_by(condition: Condition) -> Allowed | None:
    """None: it narrows nothing."""
    operator, values = condition.operator, condition.values
    if operator == "in" and not condition.size:
        return Allowed(())  # one of none
    if operator in ("eq", "in") and values:
        return Allowed((*values, MISSING) if None in values else values)  # null also finds what is not there
    if operator == "range" and len(values) == 2:
        return _range(*values)
    if operator == "prefix" and len(values) == 1 and isinstance(values[0], str):
        start = ordered_text(values[0])
        return Allowed(None, start, start + AFTER)
    if operator == "exists" and values == (False,):
        return Allowed((MISSING,))
    return None


def _range(lowest: Any, highest: Any) -> Allowed | None:
    if lowest is None and highest is None:
        return None
    start, end = kind_range(highest if lowest is None else lowest)
    low = start if lowest is None else encoded(lowest)
    return Allowed(None, low, end if highest is None else encoded(highest) + AFTER)
