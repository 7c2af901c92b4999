"""Forecast of freshness under other budgets."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from levada.collection.explain import learned_policy, site_limits
from levada.core.errors import NotFound
from levada.core.settings import Settings
from levada.freshness.explain import BudgetPoint, freshness_at_budgets
from levada.store.reading import OpenedCollection

LEAST_POWER, _MOST_POWER = -3, 3  # of two: from an eighth of the present budget to eight times it
_HOUR = 3_600.0


class Forecast(msgspec.Struct, frozen=True):
    """What the budgets around the present one are believed to buy.

    >>> forecast = news.forecast()
    >>> forecast.points[0].fresh <= forecast.present.fresh <= forecast.points[-1].fresh
    True
    """

    settings: Settings
    pages: int
    current: float | None  # share of pages believed to be current now
    points: tuple[BudgetPoint, ...]  # from an eighth of the present budget to sixteen times it

    @property
    def present(self) -> BudgetPoint:
        return self.points[-LEAST_POWER]


def forecast(collection: OpenedCollection) -> Forecast:
    policy = learned_policy(collection)
    estimates = policy.estimates
    if not estimates.pages:
        raise NotFound(f"no page is stored in {collection.folder.path} yet: let 'levada crawl URL' fetch some")
    budgets = [policy.visits_per_second * 2.0**power for power in range(LEAST_POWER, _MOST_POWER + 2)]
    points = freshness_at_budgets(estimates, budgets, site_limits(collection))
    return Forecast(collection.settings, estimates.pages, estimates.share(collection.clock.now()), tuple(points))


def forecast_facts(plan: Forecast) -> dict[str, Any]:
    return {
        "pages": plan.pages,
        "policy": plan.settings.revisit.policy,
        "believed_current": plan.current,
        "budget_per_hour": plan.present.visits * _HOUR,
        "believed_freshness": plan.present.fresh,
        "budgets": [
            {
                "times": 2.0 ** (number + LEAST_POWER),
                "per_hour": point.visits * _HOUR,
                "spent_per_hour": point.spent * _HOUR,
                "believed_freshness": point.fresh,
                "doubling_gains": twice.fresh - point.fresh,
            }
            for number, (point, twice) in enumerate(pairwise(plan.points))
        ],
    }
