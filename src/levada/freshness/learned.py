"""Ours: come back when a visit is worth its price, and let the budget set the price.

What is believed of each page's change rate is learnt from its visits, from its site's other pages and from all
pages (`beliefs`). A visit is planned for the time at which it will be worth the price (`worth`); the price is such
that all pages together ask for as many visits as may be made (`panel`). A site that may only be asked so often
has a price of its own, above the common one, and the visits that it cannot have go to the others.
"""

from __future__ import annotations

from math import inf

from levada.freshness.beliefs import PageBeliefs
from levada.freshness.hearsay import Speaker
from levada.freshness.memory import packed
from levada.freshness.panel import EAGER, price_for
from levada.freshness.worth import interval_at
from levada.records import Outcome, PageKind, PageRecord, Plan, Said, Visit

__all__ = ["LearnedRevisit"]

_AUDIT_EVERY = 16  # visits: so often a page is fetched whole, to see whether its server's 304 can be believed
_HONEST = 0.85  # a site whose 304 is believed less is asked for whole pages; the first lie of one page is enough
_RECENT = 100.0  # visits over which it is reckoned what is spent on others than pages known
_LOOK_AGAIN = 64  # plans: so often, at most, it is reckoned anew what the sites cannot use
_MOST_LIMITS = 10_000


class LearnedRevisit:
    """Spends `per_hour` fetches in all, or `per_page_per_day` for each page there is if `per_hour` is 0.

    `per_site` is how many visits per second a site can have, unless it is known to want fewer (`restrain`).
    """

    def __init__(
        self,
        beliefs: PageBeliefs,
        *,
        per_hour: float = 0.0,
        per_page_per_day: float = 4.0,
        per_site: float = inf,
    ) -> None:
        self.beliefs = beliefs
        self._per_hour = per_hour
        self._eager = EAGER if per_hour else 1.0  # without a limit every visit that is asked for is made
        self._per_page_per_day = per_page_per_day
        self._per_site = per_site
        self._limits: dict[str, float] = {}
        self._usable = beliefs.sums  # what is asked for, less what the sites' limits do not let through
        self._look_again = 0
        self._spent_elsewhere = 0.0

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        elsewhere = visit.outcome is Outcome.FIRST or page.kind is not PageKind.PAGE
        self._spent_elsewhere += (elsewhere - self._spent_elsewhere) / _RECENT
        evidence, belief = self.beliefs.seen(page, visit, modified)
        self._look_again -= 1
        return Plan(self._interval(page, belief, 0.0), packed(evidence))

    def expect(self, page: PageRecord, said: Said) -> float | None:
        if not page.history:
            return None
        told = self.beliefs.told(page, said)
        return page.history[-1].at + self._interval(page, self.beliefs.of(page), told)

    def asks_whole(self, page: PageRecord) -> bool:
        turn = (page.visits + page.id) % _AUDIT_EVERY == 0
        return turn or self.beliefs.trust(page, Speaker.TAG) < _HONEST

    def restrain(self, site: str, per_second: float) -> None:
        if len(self._limits) >= _MOST_LIMITS:
            self._limits.clear()  # they are told again with the next visits
        self._limits[site] = per_second

    def afford(self, per_hour: float) -> None:
        self._per_hour = per_hour
        self._eager = EAGER if per_hour else 1.0
        self._look_again = 0

    @property
    def visits_per_second(self) -> float:
        """What the budget leaves for coming back to pages, beside first visits, sitemaps and feeds."""
        if self._per_hour:
            return self._per_hour / 3600.0 * max(0.05, 1.0 - self._spent_elsewhere)
        return self._per_page_per_day / 86400.0 * max(1, self.beliefs.pages)

    def price(self) -> float:
        if self._look_again <= 0:
            self._reckon_usable()
        return self._price(self._usable, self.visits_per_second)

    def price_at(self, site: str) -> float:
        """What a visit to a page of this site must be worth."""
        common, limit = self.price(), self.limit(site)
        return common if limit == inf else max(common, self._price(self.beliefs.site(site).sums, limit))

    def limit(self, site: str) -> float:
        """The visits per second that the site can have."""
        return min(self._per_site, self._limits.get(site, inf))

    def _price(self, sums: list[float], visits: float) -> float:
        beliefs = self.beliefs
        return price_for(sums, beliefs.kinds, beliefs.scale.prices, self._eager * visits / beliefs.one_in)

    def _interval(self, page: PageRecord, belief: list[float], told: float) -> float:
        beliefs, scale = self.beliefs, self.beliefs.scale
        unsaid = 1.0 if told else beliefs.site(page.site).unsaid  # see `worth.profile`
        price = unsaid * self.price_at(page.site) / beliefs.importance(page.url)
        interval = interval_at(belief, beliefs.kinds, scale.intervals, scale.worths, price, told) / unsaid
        return min(interval, scale.intervals[-1])

    def _reckon_usable(self) -> None:
        beliefs = self.beliefs
        usable = list(beliefs.sums)
        limited = False
        for name, site in beliefs.sites():
            most = self._eager * self.limit(name) / beliefs.one_in
            for place in range(beliefs.kinds, len(usable)):
                if site.sums[place] <= most:
                    break  # the higher the price, the less is asked for
                usable[place] -= site.sums[place] - most
                limited = True
        self._usable = usable if limited else beliefs.sums
        self._look_again = max(_LOOK_AGAIN, beliefs.pages // beliefs.one_in // 8)
