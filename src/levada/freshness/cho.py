"""Cho and Garcia-Molina: estimate how often a page changes from visits that only tell whether it did.

Source: Estimating frequency of change (ACM TOIT 3(3), 2003), the corrected estimator: of `n` visits an interval
apart `q` met no change, then the page changes `-log((q + 0.5) / (n + 0.5))` times per interval. What is done with
the estimate is the allocation of `levada.freshness.allocation` at a fixed price. Two things are ours. Visits are
not evenly apart, so the interval is the mean of those that there were. And until a change is seen the estimate
would be 0 and the page never visited again: until then it is that of half a change.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import inf, log

from levada.freshness.allocation import visit_rate
from levada.freshness.bounds import check_bounds, passed, within
from levada.freshness.rule import Rule

__all__ = ["cho"]


def cho(
    first: float = 3600.0, floor: float = 0.0, ceiling: float = inf, *, price: float = 1800.0, scale: float = 1.0
) -> Rule:
    """Visits by an estimate of the change rate that never forgets: the longer a page keeps its pace the better, and
    the slower to notice that it no longer does.

    `price` (see `allocate`) is the knob for the budget: at 1800 a page that changes once an hour is visited once an
    hour, slower pages several times per change, faster ones less than once; four times the price is about half the
    visits.
    """
    check_bounds(first, floor, ceiling, scale)
    if not 1e-20 <= price <= 1e20:
        raise ValueError(f"needs a price from 1e-20 to 1e20, not {price:g}")
    return Rule("cho", _step, 3, (first, floor, ceiling, price, scale))


def _step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the visits after the first, those of them that met no change, the seconds they cover."""
    first, floor, ceiling = parameters[0], parameters[1], parameters[2]
    price, scale = parameters[3], parameters[4]
    if outcome == 0:
        memory[0], memory[1], memory[2] = 0.0, 0.0, 0.0
        return within(first * scale, 0.0, inf)
    memory[0] += 1.0
    memory[1] += 2.0 - outcome
    memory[2] += passed(elapsed)
    interval = 1.0 / visit_rate(_rate(memory[0], memory[1], memory[2]), 1.0, price)
    return within(within(interval, floor, ceiling) * scale, 0.0, inf)


def _rate(visits: float, unchanged: float, watched: float) -> float:
    unchanged = min(unchanged, visits - 0.5)
    return -log((unchanged + 0.5) / (visits + 0.5)) * visits / watched
