"""Explanations of estimates: change rates, and how fresh another budget would keep the pages.

An estimate is a probability for each rate (`levada.freshness.rates`). Between two rates it is spread evenly over
the logarithm, so that the shown values move smoothly. The forecast for a budget is computed for the pages of the
sample at each price (`levada.freshness.value`); a site with a limit gets no more visits than that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from math import exp, inf, log, sqrt

import msgspec

from levada.core.records import Outcome, Visit
from levada.freshness.estimates import PageEstimates
from levada.freshness.paper import ema
from levada.freshness.rates import RATES, chance_unchanged
from levada.freshness.rules import LEAST, within
from levada.freshness.value import mean_at


class RateEstimate(msgspec.Struct, frozen=True):
    """How often a page changes: the estimated interval between changes in seconds; infinite means never."""

    probabilities: tuple[float, ...]
    rates: tuple[float, ...]
    median: float
    low: float  # the first decile
    high: float  # the ninth decile
    static: float  # the probability that it never changes

    @staticmethod
    def of(probabilities: Sequence[float], rates: Sequence[float] = RATES) -> RateEstimate:
        """The estimate for these probabilities; `rates` begin with zero and rise at equal ratios."""
        return RateEstimate(
            tuple(probabilities[: len(rates)]),
            tuple(rates),
            median=_interval(probabilities, rates, 0.5),
            low=_interval(probabilities, rates, 0.9),
            high=_interval(probabilities, rates, 0.1),
            static=probabilities[0],
        )

    def current_after(self, seconds: float) -> float:
        """The probability that a copy of this age is still current."""
        return chance_unchanged(self.probabilities, self.rates, max(0.0, seconds))


def _interval(probabilities: Sequence[float], rates: Sequence[float], share: float) -> float:
    """The interval between changes at the quantile `share` of the rate."""
    below, step = probabilities[0], rates[2] / rates[1]
    if share <= below:
        return inf
    for place in range(1, len(rates)):
        if below + probabilities[place] >= share:
            part = (share - below) / probabilities[place]
            return 1.0 / (rates[place] * exp((part - 0.5) * log(step)))
        below += probabilities[place]
    return 1.0 / (rates[-1] * sqrt(step))  # by rounding, the sum stayed below the share


class BudgetPoint(msgspec.Struct, frozen=True):
    """The forecast for a number of visits per second."""

    visits: float
    spent: float  # less if every page is visited as often as possible
    fresh: float  # the share of the time during which a stored page is current


class _Curve:
    """Visits per second and freshness (times importance) of some pages.

    The first value is for no visits, the others are for the prices, from the highest to the lowest.
    """

    __slots__ = ("fresh", "visits", "weight")

    def __init__(self, prices: int) -> None:
        self.visits = [0.0] * (1 + prices)
        self.fresh = [0.0] * (1 + prices)
        self.weight = 0.0

    def add(self, site: _Curve, most: float) -> None:
        """Add a site at the same prices, with at most `most` visits."""
        self.weight += site.weight
        for place, visits in enumerate(site.visits):
            allowed = min(visits, most)
            self.visits[place] += allowed
            self.fresh[place] += site.fresh_with(allowed)

    def fresh_with(self, visits: float) -> float:
        """The freshness with this many visits, interpolated between two prices."""
        at = bisect_left(self.visits, visits)
        if at == 0 or at == len(self.visits):
            return self.fresh[min(at, len(self.visits) - 1)]
        part = (visits - self.visits[at - 1]) / (self.visits[at] - self.visits[at - 1])
        return self.fresh[at - 1] + part * (self.fresh[at] - self.fresh[at - 1])


def freshness_at_budgets(
    estimates: PageEstimates, budgets: Iterable[float], limit: Callable[[str], float] = lambda site: inf
) -> list[BudgetPoint]:
    """The forecast for each budget, in visits per second to all pages, if it is spent where it gains most.

    `limit` gives the visits per second that a site allows. A larger budget never gives less.
    """
    curves = _by_site(estimates)
    together = _Curve(len(estimates.scale.prices))
    for name, site in estimates.sites():
        if id(site) in curves:
            together.add(curves[id(site)], limit(name) / estimates.one_in)
    points = []
    for visits in budgets:
        spent = min(visits / estimates.one_in, together.visits[-1])
        fresh = together.fresh_with(spent) / together.weight if together.weight else 1.0
        points.append(BudgetPoint(visits, spent * estimates.one_in, min(fresh, 1.0)))
    return points


def _by_site(estimates: PageEstimates) -> dict[int, _Curve]:
    scale, prices, intervals = estimates.scale, len(estimates.scale.prices), estimates.scale.intervals
    curves: dict[int, _Curve] = {}
    for member in estimates.members():
        curve = curves.setdefault(id(member.site), _Curve(prices))
        curve.weight += member.importance
        curve.fresh[0] += member.importance * member.calibrated[0]  # only what never changes
        fresh = [mean_at(member.calibrated, len(scale.rates), scale.fresh, n) for n in range(len(intervals))]
        for place in range(1, 1 + prices):
            visits = member.probabilities[-place]  # after the probabilities, from the lowest price to the highest
            silent = member.site.unannounced / visits  # an announced change is visited soon, so the copy stays fresh
            curve.visits[place] += visits
            curve.fresh[place] += member.importance * _at_interval(fresh, intervals, silent)
    return curves


def _at_interval(fresh: Sequence[float], intervals: Sequence[float], interval: float) -> float:
    steps = log(interval / intervals[0]) / log(intervals[1] / intervals[0])  # at equal ratios
    low = min(max(int(steps), 0), len(intervals) - 2)
    part = min(max(steps - low, 0.0), 1.0)
    return fresh[low] + part * (fresh[low + 1] - fresh[low])


def paper_interval(visits: Sequence[Visit], first: float, floor: float = 0.0, ceiling: float = inf) -> float | None:
    """The interval of the paper's rule after these visits; None if none of them reached the page.

    If the first visit is no longer known, the rule starts with the time between the two oldest known ones.
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
