"""Cho and Garcia-Molina's estimator of change rates.

Source: Estimating frequency of change (ACM TOIT 3(3), 2003), the corrected estimator: if `q` of `n` visits at equal
intervals met no change, the page changes `-log((q + 0.5) / (n + 0.5))` times per interval. The allocation of
`levada.freshness.value` at a fixed price turns the estimate into visits. Two things are Levada's: visits are not at
equal intervals, so the mean interval is used; and until the first change, the estimate is that of half a change,
because an estimate of 0 would end the visits.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import inf, log

from levada.freshness.rule import Rule, check_bounds, passed, within
from levada.freshness.value import visit_rate


def cho(
    first: float = 3600.0, floor: float = 0.0, ceiling: float = inf, *, price: float = 1800.0, scale: float = 1.0
) -> Rule:
    """Visits by an estimate of the change rate that never forgets.

    The longer a page keeps its pace, the better the estimate, and the slower it notices another pace. `price` (see
    `allocate`) adjusts the budget: at 1800, a page that changes once an hour is visited once an hour, slower pages
    several times per change, faster ones less than once. Four times the price gives about half the visits.
    """
    check_bounds(first, floor, ceiling, scale)
    if not 1e-20 <= price <= 1e20:
        raise ValueError(f"needs a price from 1e-20 to 1e20, not {price:g}")
    return Rule("cho", _step, 3, (first, floor, ceiling, price, scale))


def _step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the visits after the first, those without a change, the seconds that they cover."""
    first, floor, ceiling = parameters[0], parameters[1], parameters[2]
    price, scale = parameters[3], parameters[4]
    if outcome == 0:
        memory[0], memory[1], memory[2] = 0.0, 0.0, 0.0
        return within(first * scale, 0.0, inf)
    memory[0] += 1.0
    memory[1] += 2.0 - outcome
    memory[2] += passed(elapsed)
    visits, unchanged, watched = memory[0], min(memory[1], memory[0] - 0.5), memory[2]
    rate = -log((unchanged + 0.5) / (visits + 0.5)) * visits / watched
    return within(within(1.0 / visit_rate(rate, 1.0, price), floor, ceiling) * scale, 0.0, inf)
