"""Learned policy: visit a page when the visit is worth its price; the budget sets the price.

The change rate of each page is estimated from its visits, from the other pages of its site and from all pages
(`levada.freshness.estimates`). A visit is planned for the time when it will be worth the price
(`levada.freshness.value`). The price is such that all pages together need as many visits as the budget has. A site
with a limit has its own higher price, and the visits that it cannot have go to the others.
"""

from __future__ import annotations

from math import inf

from levada.core.records import Outcome, PageKind, PageRecord, Plan, Signals, Visit
from levada.freshness.estimates import EAGER, PageEstimates, price_for
from levada.freshness.signals import SignalSource
from levada.freshness.value import interval_at

_AUDIT_EVERY = 16  # visits: after this many a page is fetched whole, to check the 304 of its server
_HONEST = 0.85  # below this trust in its 304, pages of a site are fetched whole; one false 304 is enough
_RECENT = 100.0  # visits over which the share of first visits, sitemaps and feeds is averaged
_LIMITS_EVERY = 64  # plans, at least, between two computations of what the limits of sites leave unused
_MOST_LIMITS = 10_000


class LearnedRevisit:
    """Spends `per_hour` fetches in all or, if that is 0, `per_page_per_day` for each page.

    `per_site` is how many visits per second a site can have for which no other limit was set (`limit_site`).
    """

    def __init__(
        self,
        estimates: PageEstimates,
        *,
        per_hour: float = 0.0,
        per_page_per_day: float = 4.0,
        per_site: float = inf,
    ) -> None:
        self.estimates = estimates
        self._per_page_per_day = per_page_per_day
        self._per_site = per_site
        self._limits: dict[str, float] = {}
        self._usable = estimates.sums  # the demand at each price, less what the limits of sites do not allow
        self._spent_elsewhere = 0.0
        self.set_budget(per_hour)

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        elsewhere = visit.outcome is Outcome.FIRST or page.kind is not PageKind.PAGE
        self._spent_elsewhere += (elsewhere - self._spent_elsewhere) / _RECENT
        evidence, probabilities = self.estimates.seen(page, visit, modified)
        self._plans_left -= 1
        return Plan(self._interval(page, probabilities, 0.0), evidence.packed())

    def visit_after_hint(self, page: PageRecord, said: Signals) -> float | None:
        if not page.history:
            return None
        hinted = self.estimates.hinted(page, said)
        return page.history[-1].at + self._interval(page, self.estimates.of(page), hinted)

    def wants_full_fetch(self, page: PageRecord) -> bool:
        turn = (page.visits + page.id) % _AUDIT_EVERY == 0
        return turn or self.estimates.trust(page, SignalSource.TAG) < _HONEST

    def limit_site(self, site: str, per_second: float) -> None:
        if len(self._limits) >= _MOST_LIMITS:
            self._limits.clear()  # the next visits set them again
        self._limits[site] = per_second

    def set_budget(self, per_hour: float) -> None:
        self._per_hour = per_hour
        self._eager = EAGER if per_hour else 1.0  # without a limit, every planned visit is made
        self._plans_left = 0  # until the usable demand is computed again

    @property
    def visits_per_second(self) -> float:
        """What the budget leaves for revisits, after first visits, sitemaps and feeds."""
        if self._per_hour:
            return self._per_hour / 3600.0 * max(0.05, 1.0 - self._spent_elsewhere)
        return self._per_page_per_day / 86400.0 * max(1, self.estimates.pages)

    def price(self) -> float:
        if self._plans_left <= 0:
            self._apply_limits()
        return self._price(self._usable, self.visits_per_second)

    def price_at(self, site: str) -> float:
        """What a visit to a page of this site must be worth."""
        common, limit = self.price(), self.limit(site)
        return common if limit == inf else max(common, self._price(self.estimates.site(site).sums, limit))

    def limit(self, site: str) -> float:
        """The visits per second that the site can have."""
        return self._limits.get(site, self._per_site)

    def _price(self, sums: list[float], visits: float) -> float:
        estimates = self.estimates
        return price_for(sums, estimates.kinds, estimates.scale.prices, self._eager * visits / estimates.one_in)

    def _interval(self, page: PageRecord, probabilities: list[float], hinted: float) -> float:
        estimates, scale = self.estimates, self.estimates.scale
        unannounced = 1.0 if hinted else estimates.site(page.site).unannounced  # see `levada.freshness.value.profile`
        price = unannounced * self.price_at(page.site) / estimates.importance(page.url)
        interval = (
            interval_at(probabilities, estimates.kinds, scale.intervals, scale.worths, price, hinted) / unannounced
        )
        return min(interval, scale.intervals[-1])

    def _apply_limits(self) -> None:
        estimates = self.estimates
        usable = list(estimates.sums)
        limited = False
        for name, site in estimates.sites():
            most = self._eager * self.limit(name) / estimates.one_in
            for place in range(estimates.kinds, len(usable)):
                if site.sums[place] <= most:
                    break  # the higher the price, the lower the demand
                usable[place] -= site.sums[place] - most
                limited = True
        self._usable = usable if limited else estimates.sums
        self._plans_left = max(_LIMITS_EVERY, estimates.pages // estimates.one_in // 8)
