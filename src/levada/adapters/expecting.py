"""What is planned for a page of which somebody told? The same in every database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from levada.adapters.keeping import brought_forward
from levada.adapters.page_rows import Row
from levada.records import PageRecord, Said

__all__ = ["Planned", "changed_plans", "earliest_by_site"]


class Planned(msgspec.Struct):
    """What is planned for a page that nobody holds."""

    id: int
    site_id: int
    visits: int
    told: Said
    next_visit: float | None
    changed: bool = False
    moved: bool = False

    def expect(self, said: Said, at: float | None) -> None:
        told, next_visit = self.told | said, brought_forward(self.next_visit, at)
        self.moved |= next_visit != self.next_visit
        self.changed |= self.moved or told != self.told
        self.told, self.next_visit = told, next_visit


def changed_plans(free: Iterable[Row], pages: Sequence[tuple[PageRecord, Said, float | None]]) -> list[Planned]:
    """The plans that change by what was told of those pages that are still as they were known.

    `free` are the pages that nobody holds: id, site id, visits, told, next visit.
    """
    plans = {id: Planned(id, site, visits, Said(told), at) for id, site, visits, told, at in free}
    for page, said, at in pages:
        plan = plans.get(page.id)
        if plan is not None and plan.visits == page.visits:
            plan.expect(said, at)
    return [plan for plan in plans.values() if plan.changed]


def earliest_by_site(plans: Iterable[Planned]) -> list[tuple[float, int]]:
    """When each site (time, site id) has a page again, of those plans that moved."""
    earliest: dict[int, float] = {}
    for plan in plans:
        if plan.moved and plan.next_visit is not None:
            earliest[plan.site_id] = min(plan.next_visit, earliest.get(plan.site_id, plan.next_visit))
    return [(at, site) for site, at in earliest.items()]
