"""Revisit rules: the protocol, its bounds, and the fixed interval.

A rule is plain arithmetic over a short row of floats per page, so that the same function runs in the crawler and,
compiled, in the laboratory over millions of visits. Every rule ends in `within`: no arithmetic and no jump of the
clock leads to a storm of visits, to a page that is never visited again, or to nan.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from math import inf, isfinite

import msgspec

LEAST, MOST = 1e-3, 1e10  # the bounds of every rule: a millisecond, three centuries


def within(seconds: float, floor: float, ceiling: float) -> float:
    """`seconds`, not below the floor and not above the ceiling; the floor for nan."""
    low = max(floor, LEAST)
    if not seconds > low:
        return low
    return min(seconds, ceiling, MOST)


def passed(elapsed: float) -> float:
    """The seconds since the last visit, at least `LEAST` even if the clock went back."""
    if not elapsed > LEAST:
        return LEAST
    return min(elapsed, MOST)


def check_bounds(first: float, floor: float, ceiling: float, scale: float) -> None:
    if not (0 <= floor <= first <= ceiling and LEAST <= first <= MOST):
        raise ValueError(f"needs floor <= first <= ceiling, not {floor:g} s, {first:g} s, {ceiling:g} s")
    if not (isfinite(scale) and scale > 0):
        raise ValueError(f"needs a scale above 0, not {scale:g}")


Step = Callable[[MutableSequence[float], Sequence[float], float, int], float]
"""`step(memory, parameters, elapsed, outcome)`, called at each visit that compared content.

`elapsed` is the seconds since the visit before; `outcome` is 0 for the first visit, 1 for unchanged, 2 for
changed. A step rewrites `memory` (zeros before the first visit) in place and returns the seconds until the next
visit. It uses only floats, loops and `math`, because the laboratory compiles it."""


class Rule(msgspec.Struct, frozen=True):
    """A named rule with its parameters; `width` floats of memory per page."""

    name: str
    step: Step
    width: int
    parameters: tuple[float, ...] = ()


def fixed(first: float = 3600.0, floor: float = 0.0, ceiling: float = inf, scale: float = 1.0) -> Rule:
    """A fixed interval for all pages, as a crawler without a policy has; the baseline for the others.

    `first` is the interval: half of it costs twice the visits. `floor` and `ceiling` exist because every rule has
    them.
    """
    check_bounds(first, floor, ceiling, scale)
    return Rule("fixed", _step, 0, (first, scale))


def _step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    return within(parameters[0] * parameters[1], 0.0, inf)
