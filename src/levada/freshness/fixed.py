"""Round robin: every page after the same interval, whatever it does."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import inf

from levada.freshness.bounds import check_bounds, within
from levada.freshness.rule import Rule

__all__ = ["fixed"]


def fixed(first: float = 3600.0, floor: float = 0.0, ceiling: float = inf, scale: float = 1.0) -> Rule:
    """What a crawler without an update module does; the yardstick for all others.

    `first` is the interval, for ever: half of it costs twice the visits. No page is starved and none is learned
    from. `floor` and `ceiling` are there because every rule has them.
    """
    check_bounds(first, floor, ceiling, scale)
    return Rule("fixed", _step, 0, (first, scale))


def _step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    return within(parameters[0] * parameters[1], 0.0, inf)
