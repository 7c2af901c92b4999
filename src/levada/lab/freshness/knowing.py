"""The oracle: what could be had by one who knows every page's true change rate at every time?

It visits by LambdaCrawl's allocation (`levada.freshness.allocation`) for the true rates, evenly spaced, at the one
price that spends the fetches given.
"""

from __future__ import annotations

import numpy as np

from levada.compiling import compiled
from levada.freshness.allocation import visit_rate
from levada.lab.freshness.world import Floats, Integers, Visits, World

__all__ = ["know"]

_ROUNDS = 60


def know(world: World, fetches: int) -> Visits:
    """At most so many fetches, first visits among them."""
    visit = compiled(_visit)
    low, high = 1e-6, 1e12  # prices
    page, at = visit(world.begins, world.ends, world.horizon, world.rates, high)
    for _ in range(_ROUNDS):
        middle = float(np.sqrt(low * high))
        if _count(world, middle) > fetches:
            low = middle
        else:
            high = middle
    page, at = visit(world.begins, world.ends, world.horizon, world.rates, high)
    order = np.argsort(at, kind="stable")
    return Visits(page[order], at[order])


def _count(world: World, price: float) -> int:
    return int(compiled(_visits_at)(world.begins, world.ends, world.horizon, world.rates, price))


def _visits_at(begins: Floats, ends: Floats, horizon: float, rates: Floats, price: float) -> int:
    count = 0
    for page in range(len(begins)):
        at = begins[page]
        while at < ends[page]:
            count += 1
            at = _next_visit(at, rates[page], horizon, price)
    return count


def _visit(begins: Floats, ends: Floats, horizon: float, rates: Floats, price: float) -> tuple[Integers, Floats]:
    count = _visits_at(begins, ends, horizon, rates, price)
    visited, times = np.empty(count, np.int64), np.empty(count)
    place = 0
    for page in range(len(begins)):
        at = begins[page]
        while at < ends[page]:
            visited[place], times[place] = page, at
            place += 1
            at = _next_visit(at, rates[page], horizon, price)
    return visited, times


def _next_visit(at: float, rates: Floats, horizon: float, price: float) -> float:
    """Evenly spaced while the rate holds; one that is overdue when the rate changes is made at once."""
    length = horizon / len(rates)
    now = at
    segment = min(int(at / length), len(rates) - 1)
    while segment < len(rates):
        wanted = visit_rate(rates[segment], 1.0, price)
        due = at + 1.0 / wanted if wanted > 0.0 else np.inf
        if max(due, now) < (segment + 1) * length:
            return max(due, now)
        segment += 1
        now = segment * length
    return np.inf
