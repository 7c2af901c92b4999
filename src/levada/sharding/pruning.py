"""Pruning: which values a filter leaves possible for each field.

A filter becomes alternatives. Each says what it allows per field: some values, a range, or the prefix of a text.
What is not understood prunes nothing, so that no document is ever missed. Alternatives are multiplied out up to a
limit; what would exceed it prunes nothing either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from levada.sharding.queries import AllOf, AnyOf, Condition, Filter, NoneOf
from levada.sharding.values import AFTER, MISSING, encoded, kind_range, ordered_text

MOST_ALTERNATIVES = 64
_MOST_LEVELS = 100


class Allowed(msgspec.Struct, frozen=True):
    """What a field may be: one of `values`, or an encoding from `low` to `high`, without `high`."""

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


def alternatives(query: Filter | None, reader: Reader | None = None) -> tuple[Alternative, ...]:
    """Every document that the filter finds is allowed by one of these; none: nothing can be found.

    `reader` says what a condition allows; by default it is `allowed_by`.
    """
    return ({},) if query is None else _of(query, 0, reader or allowed_by)


def _of(query: Filter, level: int, reader: Reader) -> tuple[Alternative, ...]:
    if level > _MOST_LEVELS or isinstance(query, NoneOf):
        return ({},)
    if isinstance(query, Condition):
        allowed = reader(query)
        return ({},) if allowed is None else ({query.field: allowed},)
    if isinstance(query, AnyOf):
        either = [each for one in query.of for each in _of(one, level + 1, reader)]
        return tuple(either) if 0 < len(either) <= MOST_ALTERNATIVES else ({},)
    return _together(query, level, reader)


def _together(query: AllOf, level: int, reader: Reader) -> tuple[Alternative, ...]:
    found: tuple[Alternative, ...] = ({},)
    for one in query.of:
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
    """What a condition allows; None: it prunes nothing."""
    operator, values = condition.operator, condition.values
    if operator == "in" and not condition.size:
        return Allowed(())  # one of no values
    if operator in ("eq", "in") and values:
        return Allowed((*values, MISSING) if None in values else values)  # null also matches a missing field
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
