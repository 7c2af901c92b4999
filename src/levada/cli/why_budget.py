"""How fresh would the pages be with more fetches, or fewer? For a person."""

from __future__ import annotations

from itertools import pairwise

from rich.text import Text

from levada.cli.pictures import bar
from levada.cli.printing import printer
from levada.telling.outlook import LEAST_POWER, Outlook
from levada.telling.words import plural

__all__ = ["show"]

_BAR = 30
_HOUR = 3_600.0


def show(plan: Outlook) -> None:
    out = printer()
    out.print(
        f"{plural(plan.pages, 'page')}: freshness that is believed to come of each budget, well spent", style="bold"
    )
    out.print(Text(f"{'budget':>9}  {'fetches per hour':>16}  {'fresh':>6}  {'':{_BAR}}  twice that", style="dim"))
    for number, (point, twice) in enumerate(pairwise(plan.points)):
        is_present = point is plan.present
        share = "now" if is_present else _times(number + LEAST_POWER)
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
    now, half, twice = plan.present, plan.points[-LEAST_POWER - 1], plan.points[-LEAST_POWER + 1]
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
