"""How often is each page worth a visit, if its change rate is known and visits are few?

Source: LambdaCrawl (Kolobov, Peres, Lu, Horvitz: Staying up to date with online content changes using reinforcement
learning for scheduling, 2019). The cost of a page that is hardly ever current grows without end, so every page that
changes is visited. `price` is what the last visit of the budget is worth, the same for every page: a page of
importance `weight` that changes at `rate` is visited at the rate `f` at which `weight rate / (f (f + rate))` is it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, inf, sqrt

__all__ = ["allocate", "freshness_of", "visit_rate"]

_CLOSE = 1e-12  # of the price, relatively
_NOTHING, _MOST = 1e-60, 1e12  # a worth that no budget reaches; rates and weights that no page has


def visit_rate(rate: float, weight: float, price: float) -> float:
    """Visits per second at this price; none for a page that never changes."""
    if rate <= 0.0 or weight <= 0.0:
        return 0.0
    worth = weight * rate / price
    return 2.0 * worth / (rate + sqrt(rate * rate + 4.0 * worth))  # the root, without losing digits to a difference


def allocate(rates: Sequence[float], weights: Sequence[float], budget: float) -> float:
    """The price at which `budget` visits per second are spent; infinite if no page changes."""
    if not 1 / _MOST <= budget <= _MOST:
        raise ValueError(f"needs a budget from {1 / _MOST:g} to {_MOST:g} visits per second, not {budget:g}")
    if not all(0 <= value <= _MOST for values in (rates, weights) for value in values):
        raise ValueError(f"rates and weights lie between 0 and {_MOST:g}")
    pairs = zip(rates, weights, strict=True)
    pages = [(rate, weight) for rate, weight in pairs if rate * weight > _NOTHING]
    if not pages:
        return inf
    high = (
        sum(sqrt(rate * weight) for rate, weight in pages) / budget
    ) ** 2  # too dear: f < sqrt(rate weight / price)
    low = high / 4
    while _spent(pages, low) < budget:
        low, high = low / 4, low
    while high - low > _CLOSE * high:
        middle = sqrt(low * high)
        low, high = (middle, high) if _spent(pages, middle) > budget else (low, middle)
    return high


def _spent(pages: Sequence[tuple[float, float]], price: float) -> float:
    return sum(visit_rate(rate, weight, price) for rate, weight in pages)


def freshness_of(rate: float, visit_rate: float) -> float:
    """The share of time for which a page that changes at random is current, visited at even intervals."""
    if rate <= 0.0:
        return 1.0
    if visit_rate <= 0.0:
        return 0.0
    changes = rate / visit_rate  # expected between two visits
    return -expm1(-changes) / changes if changes > 0.0 else 1.0
