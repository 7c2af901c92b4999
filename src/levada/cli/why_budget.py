"""How fresh would the pages be with more fetches, or fewer?"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
from rich.text import Text

from levada.assemble.reading import Collection
from levada.cli.believed import learned_policy, site_limits
from levada.cli.pictures import bar
from levada.cli.printing import plural, printer
from levada.errors import NotFound
from levada.flow.settings import Settings
from levada.freshness.explain import BudgetPoint, freshness_at_budgets

__all__ = ["Outlook", "facts", "outlook", "show"]

_EIGHTH, _EIGHTFOLD = -3, 3  # powers of two
_BAR = 30
_HOUR = 3_600.0


class Outlook(msgspec.Struct, frozen=True):
    """What the budgets around the present one are believed to buy."""

    settings: Settings
    pages: int
    current: float | None  # share of pages believed to be current now
    points: tuple[BudgetPoint, ...]  # from an eighth of the present budget to sixteen times it

    @property
    def present(self) -> BudgetPoint:
        return self.points[-_EIGHTH]


def outlook(collection: Collection) -> Outlook:
    policy = learned_policy(collection)
    beliefs = policy.beliefs
    if not beliefs.pages:
        raise NotFound(f"no page is stored in {collection.folder.path} yet: let 'levada crawl URL' fetch some")
    budgets = [policy.visits_per_second * 2.0**power for power in range(_EIGHTH, _EIGHTFOLD + 2)]
    points = freshness_at_budgets(beliefs, budgets, site_limits(collection))
    return Outlook(collection.settings, beliefs.pages, beliefs.share(collection.clock.now()), tuple(points))


def show(plan: Outlook) -> None:
    out = printer()
    out.print(
        f"{plural(plan.pages, 'page')}: freshness that is believed to come of each budget, well spent", style="bold"
    )
    out.print(Text(f"{'budget':>9}  {'fetches per hour':>16}  {'fresh':>6}  {'':{_BAR}}  twice that", style="dim"))
    for number, (point, twice) in enumerate(pairwise(plan.points)):
        is_present = point is plan.present
        share = "now" if is_present else _times(number + _EIGHTH)
        row = (
            f"{share:>9}  {_per_hour(point.visits):>16}  {point.fresh:>6.1%}  {bar(point.fresh, _BAR):<{_BAR}}  "
            f"{100 * (twice.fresh - point.fresh):+.1f}"
        )
        out.print(Text(row, style="bold green" if is_present else ""))
    for told in _remarks(plan):
        out.print(told)


def _times(power: int) -> str:
    return f"x {2**power}" if power > 0 else f"x 1/{2**-power}"


def _remarks(plan: Outlook) -> list[str]:
    now, half, twice = plan.present, plan.points[-_EIGHTH - 1], plan.points[-_EIGHTH + 1]
    said = [
        f"The present budget, {_budget(plan)}, keeps a stored page fresh for {now.fresh:.1%} of the time. Twice as "
        f"much would gain {_points(twice.fresh - now.fresh)}, half as much lose {_points(now.fresh - half.fresh)}."
    ]
    if now.spent < 0.999 * now.visits:
        said.append(
            f"Only {_per_hour(now.spent)} fetches per hour can be spent: every page is visited as often as "
            "revisit.floor, or its site, allows."
        )
    if plan.current is not None:
        said.append(f"Right now {plan.current:.1%} of the stored pages are believed to be current.")
    if plan.settings.revisit.policy != "learned":
        said.append(f'revisit.policy is "{plan.settings.revisit.policy}", which knows no budget: "learned" does.')
    return said


def _budget(plan: Outlook) -> str:
    budget = plan.settings.budget
    if budget.per_hour:
        return f"{budget.per_hour:,} fetches per hour (budget.per_hour)"
    each = f"{budget.per_page_per_day:g} per page and day (budget.per_page_per_day)"
    return f"{_per_hour(plan.present.visits)} fetches per hour or {each}"


def _per_hour(visits: float) -> str:
    per_hour = visits * _HOUR
    return f"{per_hour:,.0f}" if per_hour >= 9.95 else f"{per_hour:.2g}"


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def facts(plan: Outlook) -> dict[str, Any]:
    return {
        "pages": plan.pages,
        "policy": plan.settings.revisit.policy,
        "believed_current": plan.current,
        "budget_per_hour": plan.present.visits * _HOUR,
        "believed_freshness": plan.present.fresh,
        "budgets": [
            {
                "times": 2.0 ** (number + _EIGHTH),
                "per_hour": point.visits * _HOUR,
                "spent_per_hour": point.spent * _HOUR,
                "believed_freshness": point.fresh,
                "doubling_gains": twice.fresh - point.fresh,
            }
            for number, (point, twice) in enumerate(pairwise(plan.points))
        ],
    }
