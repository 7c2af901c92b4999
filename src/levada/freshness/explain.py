"""What is believed, so that a person can check it: how often does a page change, what would another budget buy?

A belief is a chance for each of the thinkable rates (`rates`). Between two of them it is spread evenly over the
logarithm, so that what is said of it moves smoothly. What a budget buys is reckoned for the pages of the panel at
each price (`worth`), and a site that may only be asked so often is given no more than that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from math import exp, inf, log, sqrt

import msgspec

from levada.freshness.beliefs import PageBeliefs
from levada.freshness.bounds import LEAST, within
from levada.freshness.ema import ema
from levada.freshness.rates import RATES, chance_unchanged
from levada.freshness.worth import Scale, mean_at
from levada.records import Outcome, Visit

__all__ = ["BudgetPoint", "RateBelief", "freshness_at_budgets", "paper_interval"]


class RateBelief(msgspec.Struct, frozen=True):
    """How often a page changes, as far as is known. Intervals between changes in seconds, infinite: never."""

    belief: tuple[float, ...]
    rates: tuple[float, ...]
    median: float  # as likely shorter as longer
    low: float  # shorter with a chance of one in ten
    high: float  # longer with a chance of one in ten
    static: float  # the chance that it never changes

    @staticmethod
    def of(belief: Sequence[float], rates: Sequence[float] = RATES) -> RateBelief:
        """`rates` begin with zero, and rise at equal ratios."""
        return RateBelief(
            tuple(belief[: len(rates)]),
            tuple(rates),
            median=_interval(belief, rates, 0.5),
            low=_interval(belief, rates, 0.9),
            high=_interval(belief, rates, 0.1),
            static=belief[0],
        )

    def current_after(self, seconds: float) -> float:
        """The chance that a copy of this age is still current."""
        return chance_unchanged(self.belief, self.rates, max(0.0, seconds))


def _interval(belief: Sequence[float], rates: Sequence[float], share: float) -> float:
    """The interval between changes that goes with the rate below which `share` of the belief lies."""
    below, step = belief[0], rates[2] / rates[1]
    if share <= below:
        return inf
    for place in range(1, len(rates)):
        if below + belief[place] >= share:
            part = (share - below) / belief[place]
            return 1.0 / (rates[place] * exp((part - 0.5) * log(step)))
        below += belief[place]
    return 1.0 / (rates[-1] * sqrt(step))  # what rounding left over


class BudgetPoint(msgspec.Struct, frozen=True):
    """What so many visits per second are believed to buy."""

    visits: float
    spent: float  # less where every page is visited as often as it may be
    fresh: float  # the share of the time during which a stored page is current


class _Curve:
    """Visits per second and freshness (times importance) of some pages: never visited, then from the highest price
    to the lowest."""

    __slots__ = ("fresh", "visits", "weight")

    def __init__(self, prices: int) -> None:
        self.visits = [0.0] * (1 + prices)
        self.fresh = [0.0] * (1 + prices)
        self.weight = 0.0

    def add(self, site: _Curve, most: float) -> None:
        """A site at the same prices, with no more visits than `most`."""
        self.weight += site.weight
        for place, visits in enumerate(site.visits):
            allowed = min(visits, most)
            self.visits[place] += allowed
            self.fresh[place] += site.fresh_with(allowed)

    def fresh_with(self, visits: float) -> float:
        """Between two prices in proportion."""
        at = bisect_left(self.visits, visits)
        if at == 0 or at == len(self.visits):
            return self.fresh[min(at, len(self.visits) - 1)]
        part = (visits - self.visits[at - 1]) / (self.visits[at] - self.visits[at - 1])
        return self.fresh[at - 1] + part * (self.fresh[at] - self.fresh[at - 1])


def freshness_at_budgets(
    beliefs: PageBeliefs, budgets: Iterable[float], limit: Callable[[str], float] = lambda site: inf
) -> list[BudgetPoint]:
    """What each budget, in visits per second to all pages, is believed to buy if it is spent where it gains most.

    `limit` is how many visits per second a site allows. A larger budget never buys less.
    """
    curves = _by_site(beliefs)
    together = _Curve(len(beliefs.scale.prices))
    for name, site in beliefs.sites():
        if id(site) in curves:
            together.add(curves[id(site)], limit(name) / beliefs.one_in)
    points = []
    for visits in budgets:
        spent = min(visits / beliefs.one_in, together.visits[-1])
        fresh = together.fresh_with(spent) / together.weight if together.weight else 1.0
        points.append(BudgetPoint(visits, spent * beliefs.one_in, min(fresh, 1.0)))
    return points


def _by_site(beliefs: PageBeliefs) -> dict[int, _Curve]:
    prices = len(beliefs.scale.prices)
    curves: dict[int, _Curve] = {}
    for member in beliefs.members():
        curve = curves.setdefault(id(member.site), _Curve(prices))
        curve.weight += member.importance
        curve.fresh[0] += member.importance * member.belief[0]  # only what never changes
        fresh = _fresh_by_interval(member.belief, beliefs.scale)
        for place in range(1, 1 + prices):
            visits = member.belief[-place]  # behind the belief, from the lowest price to the highest
            untold = member.site.unsaid / visits  # what is told of is met soon, and does not make the copy old
            curve.visits[place] += visits
            curve.fresh[place] += member.importance * _at_interval(fresh, beliefs.scale.intervals, untold)
    return curves


def _fresh_by_interval(belief: Sequence[float], scale: Scale) -> list[float]:
    kinds = len(scale.rates)
    return [mean_at(belief, kinds, scale.fresh, place) for place in range(len(scale.intervals))]


def _at_interval(fresh: Sequence[float], intervals: Sequence[float], interval: float) -> float:
    steps = log(interval / intervals[0]) / log(intervals[1] / intervals[0])  # at equal ratios
    low = min(max(int(steps), 0), len(intervals) - 2)
    part = min(max(steps - low, 0.0), 1.0)
    return fresh[low] + part * (fresh[low + 1] - fresh[low])


def paper_interval(visits: Sequence[Visit], first: float, floor: float = 0.0, ceiling: float = inf) -> float | None:
    """The interval at which the paper's rule would be after these visits; None without one that met the page.

    If the first visit is no longer known, it stands where the oldest known one left off: at the time from that one
    to the next.
    """
    met = [visit for visit in visits if visit.outcome <= Outcome.CHANGED]
    if not met:
        return None
    if met[0].outcome is not Outcome.FIRST and len(met) > 1:
        first = met[1].at - met[0].at
    ceiling = max(ceiling, floor, LEAST)
    rule = ema(within(first, floor, ceiling), floor, ceiling)
    memory = [0.0] * rule.width
    interval = rule.step(memory, rule.parameters, 0.0, Outcome.FIRST)
    for visit in met[1:]:
        interval = rule.step(memory, rule.parameters, 0.0, visit.outcome)
    return interval
