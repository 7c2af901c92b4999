"""What is a visit worth, and when is it worth its price?

A page that changes at rate `r` and was last visited `t` seconds ago is worth a visit of

    worth(t) = r t^2 / (1 + r t)

seconds: for small `r t` twice the freshness that the visit gains, for large `r t` just the time it has waited. It
grows with `t`. Visiting every page when its worth reaches one and the same price spends a budget well: where the
rates are known, that is LambdaCrawl's allocation, evenly spaced. Where a rate is only believed, the worth is
averaged over the belief; where somebody tells of a change, it is with that chance the worth of a page that surely
changed, `t`.

Source: Kolobov, Peres, Lu and Horvitz, "Staying up to date with online content changes using reinforcement learning
for scheduling" (2019), for the allocation; the index per page, averaged over a belief, is ours. The worth that
counts freshness alone, `(1 - exp(-r t) (1 + r t)) / r`, keeps a thousandth more of the pages fresh and gives up
those that change fastest altogether: their copies grow old without end.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

import msgspec

from levada.freshness.rates import RATES

__all__ = ["Scale", "interval_at", "mean_at", "profile"]

_MANY_INTERVALS = 32
_MANY_PRICES = 20
_LOWEST_PRICE, _HIGHEST_PRICE = 1.0, 1e8


class Scale(msgspec.Struct, frozen=True):
    """Intervals from floor to ceiling at equal ratios, what each is worth at each rate, and the prices."""

    rates: tuple[float, ...]
    intervals: tuple[float, ...]
    worths: tuple[float, ...]  # interval by interval, at each rate
    fresh: tuple[float, ...]  # likewise: the share of such an interval during which the copy is current
    prices: tuple[float, ...]

    @staticmethod
    def between(floor: float, ceiling: float) -> Scale:
        if not 0 < floor < ceiling < math.inf:
            raise ValueError(f"needs 0 < floor < ceiling, not {floor:g} s and {ceiling:g} s")
        intervals = _ratios(floor, ceiling, _MANY_INTERVALS)
        return Scale(
            rates=RATES,
            intervals=intervals,
            worths=tuple(_worth(rate, interval) for interval in intervals for rate in RATES),
            fresh=tuple(_fresh(rate, interval) for interval in intervals for rate in RATES),
            prices=_ratios(_LOWEST_PRICE, _HIGHEST_PRICE, _MANY_PRICES),
        )


def _ratios(low: float, high: float, many: int) -> tuple[float, ...]:
    return tuple(low * (high / low) ** (step / (many - 1)) for step in range(many))


def _worth(rate: float, interval: float) -> float:
    return rate * interval * interval / (1.0 + rate * interval)


def _fresh(rate: float, interval: float) -> float:
    changes = rate * interval
    return -math.expm1(-changes) / changes if changes > 1e-9 else 1.0


def mean_at(belief: Sequence[float], kinds: int, table: Sequence[float], place: int) -> float:
    """A row of the scale, averaged over the belief."""
    total = 0.0
    start = place * kinds
    for k in range(kinds):
        total += belief[k] * table[start + k]
    return total


def interval_at(
    belief: Sequence[float],
    kinds: int,
    intervals: Sequence[float],
    worths: Sequence[float],
    price: float,
    told: float,
) -> float:
    """The interval after which a visit is worth `price`, if with the chance `told` the page surely changed."""
    low, last = 0, len(intervals) - 1
    high = last
    below = above = -1.0  # of the ends, which are hardly ever asked for
    while high - low > 1:
        middle = (low + high) // 2
        worth = told * intervals[middle] + (1.0 - told) * mean_at(belief, kinds, worths, middle)
        if worth < price:
            low, below = middle, worth
        else:
            high, above = middle, worth
    if low == 0:
        below = told * intervals[0] + (1.0 - told) * mean_at(belief, kinds, worths, 0)
        if price <= below:
            return intervals[0]
    if high == last:
        above = told * intervals[last] + (1.0 - told) * mean_at(belief, kinds, worths, last)
        if price >= above:
            return intervals[last]
    return _between(intervals[low], intervals[high], (price - below) / (above - below))


def profile(
    belief: MutableSequence[float],
    kinds: int,
    intervals: Sequence[float],
    worths: Sequence[float],
    prices: Sequence[float],
    importance: float,
    unsaid: float,
) -> None:
    """Write behind the belief the visits per second that the page is worth at each price.

    Where others tell of changes, visits are planned for the `unsaid` share of them: a page that changes at that
    share of its rate is worth after `t` seconds what it is worth after `unsaid t` at its rate, over `unsaid`.
    """
    importance /= unsaid
    at = 0
    below, above = 0.0, importance * mean_at(belief, kinds, worths, 0)
    last = len(intervals) - 1
    for p in range(len(prices)):
        while above < prices[p] and at < last:
            at += 1
            below, above = above, importance * mean_at(belief, kinds, worths, at)
        if above < prices[p] or at == 0:
            belief[kinds + p] = unsaid / intervals[at]
        else:
            part = (prices[p] - below) / (above - below)
            belief[kinds + p] = unsaid / _between(intervals[at - 1], intervals[at], part)


def _between(low: float, high: float, part: float) -> float:
    return low * math.exp(part * math.log(high / low))
