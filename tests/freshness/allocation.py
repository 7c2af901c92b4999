"""LambdaCrawl's allocation of a budget, and the freshness that visits keep, for pages whose change rates are known."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, inf, sqrt

from levada.freshness.value import visit_rate

_CLOSE = 1e-12  # of the price, relatively
_NOTHING, _MOST = 1e-60, 1e12  # a worth that no budget reaches; above the rates and weights of any page


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
    # Too high, because f < sqrt(rate weight / price).
    high = (sum(sqrt(rate * weight) for rate, weight in pages) / budget) ** 2
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
    """The share of time for which a page with random changes is current, visited at equal intervals."""
    if rate <= 0.0:
        return 1.0
    if visit_rate <= 0.0:
        return 0.0
    changes = rate / visit_rate  # expected between two visits
    return -expm1(-changes) / changes if changes > 0.0 else 1.0
