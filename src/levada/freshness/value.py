"""Value of a visit, and the allocation of visits to pages.

Source: LambdaCrawl (Kolobov, Peres, Lu, Horvitz: Staying up to date with online content changes using reinforcement
learning for scheduling, 2019). The cost of a page that is hardly ever current grows without end, so every page that
changes is visited. `price` is what the last visit of the budget is worth, the same for every page: a page of
importance `weight` that changes at `rate` is visited at the rate `f` with `price = weight rate / (f (f + rate))`.

A visit to a page that changes at rate `r` and was last visited `t` seconds ago is worth

    worth(t) = r t^2 / (1 + r t)

seconds: for small `r t` twice the freshness that the visit gains, for large `r t` the time it has waited. It grows
with `t`. A budget is spent well if every page is visited when its worth reaches the same price: with known rates,
that is LambdaCrawl's allocation at equal intervals. With an estimate, the worth is averaged over it; with a change
hint, it is, with the probability of the hint, the worth of a page that has changed, `t`. This index per page is
Levada's own. The worth that counts freshness alone, `(1 - exp(-r t) (1 + r t)) / r`, keeps a thousandth more of the
pages fresh, but gives up those that change fastest: their copies grow old without end.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence
from math import sqrt

import msgspec

from levada.freshness.rates import RATES


def visit_rate(rate: float, weight: float, price: float) -> float:
    """Visits per second at this price; 0 for a page that never changes."""
    if rate <= 0.0 or weight <= 0.0:
        return 0.0
    worth = weight * rate / price
    return 2.0 * worth / (rate + sqrt(rate * rate + 4.0 * worth))  # the root, without losing digits to a difference


_MANY_INTERVALS = 32
_MANY_PRICES = 20
_LOWEST_PRICE, _HIGHEST_PRICE = 1.0, 1e8


class Scale(msgspec.Struct, frozen=True):
    """Intervals from floor to ceiling at equal ratios, the worth of each at each rate, and the prices."""

    rates: tuple[float, ...]
    intervals: tuple[float, ...]
    worths: tuple[float, ...]  # interval by interval, at each rate
    fresh: tuple[float, ...]  # the same order: the share of the interval during which the copy is current
    prices: tuple[float, ...]

    @staticmethod
    def between(floor: float, ceiling: float) -> Scale:
        if not 0 < floor < ceiling < math.inf:
            raise ValueError(f"needs 0 < floor < ceiling, not {floor:g} s and {ceiling:g} s")
        intervals = _ratios(floor, ceiling, _MANY_INTERVALS)
        return Scale(
            rates=RATES,
            intervals=intervals,
            worths=tuple(rate * t * t / (1.0 + rate * t) for t in intervals for rate in RATES),
            fresh=tuple(_fresh(rate, interval) for interval in intervals for rate in RATES),
            prices=_ratios(_LOWEST_PRICE, _HIGHEST_PRICE, _MANY_PRICES),
        )


def _ratios(low: float, high: float, many: int) -> tuple[float, ...]:
    return tuple(low * (high / low) ** (step / (many - 1)) for step in range(many))


def _fresh(rate: float, interval: float) -> float:
    changes = rate * interval
    return -math.expm1(-changes) / changes if changes > 1e-9 else 1.0


def mean_at(probabilities: Sequence[float], kinds: int, table: Sequence[float], place: int) -> float:
    """A row of the scale, averaged over the probabilities."""
    total = 0.0
    start = place * kinds
    for k in range(kinds):
        total += probabilities[k] * table[start + k]
    return total


def interval_at(
    probabilities: Sequence[float],
    kinds: int,
    intervals: Sequence[float],
    worths: Sequence[float],
    price: float,
    hinted: float,
) -> float:
    """The interval after which a visit is worth `price`; `hinted` is the probability that a hint is right."""
    low, last = 0, len(intervals) - 1
    high = last
    below = above = -1.0  # the worth at the ends is rarely needed
    while high - low > 1:
        middle = (low + high) // 2
        worth = hinted * intervals[middle] + (1.0 - hinted) * mean_at(probabilities, kinds, worths, middle)
        if worth < price:
            low, below = middle, worth
        else:
            high, above = middle, worth
    if low == 0:
        below = hinted * intervals[0] + (1.0 - hinted) * mean_at(probabilities, kinds, worths, 0)
        if price <= below:
            return intervals[0]
    if high == last:
        above = hinted * intervals[last] + (1.0 - hinted) * mean_at(probabilities, kinds, worths, last)
        if price >= above:
            return intervals[last]
    return _between(intervals[low], intervals[high], (price - below) / (above - below))


def profile(
    probabilities: MutableSequence[float],
    kinds: int,
    intervals: Sequence[float],
    worths: Sequence[float],
    prices: Sequence[float],
    importance: float,
    unannounced: float,
) -> None:
    """Write the visits per second of the page at each price after its probabilities.

    Where changes are announced, visits are planned for the `unannounced` share `u` of them: a page with the rate
    `u r` is worth after `t` seconds what one with the rate `r` is worth after `u t`, divided by `u`.
    """
    importance /= unannounced
    at = 0
    below, above = 0.0, importance * mean_at(probabilities, kinds, worths, 0)
    last = len(intervals) - 1
    for p in range(len(prices)):
        while above < prices[p] and at < last:
            at += 1
            below, above = above, importance * mean_at(probabilities, kinds, worths, at)
        if above < prices[p] or at == 0:
            probabilities[kinds + p] = unannounced / intervals[at]
        else:
            part = (prices[p] - below) / (above - below)
            probabilities[kinds + p] = unannounced / _between(intervals[at - 1], intervals[at], part)


def _between(low: float, high: float, part: float) -> float:
    return low * math.exp(part * math.log(high / low))
