"""What does the crawl believe of a page: how often it changes, who can be trusted, what a visit must be worth?

It is reckoned anew from the stored pages, as a crawl does that starts again; a running one may have learnt a
little more since.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from levada.assemble.parts import make_policy, remember_pages
from levada.freshness import LearnedRevisit
from levada.freshness.explain import RateBelief, freshness_at_budgets, paper_interval
from levada.freshness.hearsay import Speaker
from levada.records import Outcome, PageRecord, Said

if TYPE_CHECKING:
    from levada.assemble.reading import Collection

__all__ = ["Believed", "Heard", "believed_of", "learned_policy", "site_limits"]

_WHO = {
    Speaker.TAG: ("304", Said.NOT_MODIFIED | Said.SAME_TAG),
    Speaker.DATE: ("Last-Modified", Said.DATED | Said.DATE_MOVED),
    Speaker.SITEMAP: ("sitemap", Said.SITEMAP),
    Speaker.FEED: ("feed", Said.FEED),
}


class Heard(msgspec.Struct, frozen=True):
    """What somebody else says of changes, and how far he is believed."""

    who: str
    said: int  # at how many of the page's known visits
    right: int  # over the visits of the site's pages, where it could be told
    wrong: int
    trust: float


class Believed(msgspec.Struct, frozen=True):
    rate: RateBelief
    current: float | None  # the chance that the stored copy is; None if nothing is stored
    foretold: float  # share of the changes on its site that a sitemap or feed told of
    price: float  # what a visit to a page of its site must be worth, in seconds
    common_price: float  # to one of a site that can be asked as often as wanted
    importance: float
    interval: float | None  # at which a visit to the page is worth that; None before the first visit
    visits_per_hour: float  # to all pages, that the budget leaves for coming back
    spent_per_hour: float  # of these, what the pages are worth at that price
    pages: int
    heard: tuple[Heard, ...]
    paper_interval: float | None


def learned_policy(collection: Collection) -> LearnedRevisit:
    """Ours, whichever is set: it knows what the pages are like."""
    settings = collection.settings
    policy = make_policy(replace(settings, revisit=replace(settings.revisit, policy="learned")))
    assert isinstance(policy, LearnedRevisit)
    remember_pages(policy, collection.store)
    return policy


def site_limits(collection: Collection) -> Callable[[str], float]:
    """Visits per second that can be made to a site: what the settings and its own robots.txt allow."""
    settings = collection.settings
    ours = max(settings.politeness.delay, 3600.0 / (settings.budget.per_site_per_hour or inf))

    def limit(site: str) -> float:
        known = collection.store.site(site)
        pause = max(ours, known.delay or 0.0) if known else ours
        return 1.0 / pause if pause else inf

    return limit


def believed_of(collection: Collection, page: PageRecord, now: float) -> Believed:
    policy = learned_policy(collection)
    policy.restrain(page.site, site_limits(collection)(page.site))
    rate = RateBelief.of(policy.beliefs.of(page))
    met = page.history[-1].at if page.history else None
    worth_at = policy.expect(page, Said.NOTHING)
    unsaid = policy.beliefs.site(page.site).unsaid
    told = policy.beliefs.told(page, page.told)
    revisit = collection.settings.revisit
    (spent,) = freshness_at_budgets(policy.beliefs, [policy.visits_per_second], site_limits(collection))
    return Believed(
        rate=rate,
        current=_current(rate, now - met, unsaid, told) if met is not None and page.version else None,
        foretold=1.0 - unsaid,
        price=policy.price_at(page.site),
        common_price=policy.price(),
        importance=policy.beliefs.importance(page.url),
        interval=None if met is None or worth_at is None else worth_at - met,
        visits_per_hour=3600.0 * policy.visits_per_second,
        spent_per_hour=3600.0 * spent.spent,
        pages=policy.beliefs.pages,
        heard=tuple(_heard(policy, page, speaker) for speaker in Speaker),
        paper_interval=paper_interval(page.history, revisit.first, revisit.floor, revisit.ceiling),
    )


def _current(rate: RateBelief, age: float, unsaid: float, told: float) -> float:
    """Where changes are told of, silence is a sign that there was none."""
    return (1.0 - told) * rate.current_after(age if told else unsaid * age)


def _heard(policy: LearnedRevisit, page: PageRecord, speaker: Speaker) -> Heard:
    who, words = _WHO[speaker]
    after_first = (visit for visit in page.history if visit.outcome is not Outcome.FIRST)
    said = sum(bool(visit.said & words) for visit in after_first)
    right, wrong = policy.beliefs.site(page.site).counts[2 * speaker : 2 * speaker + 2]
    return Heard(who, said, right, wrong, policy.beliefs.trust(page, speaker))
