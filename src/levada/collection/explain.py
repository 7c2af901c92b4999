"""Explanation of a page's next visit, for programs and people; and what other budgets would buy.

It is computed from the stored pages, as by a crawl that starts now; a running crawl may have learnt a little more.

Ours weighs the estimate of a page's changes against a price. The paper's rule needs the interval before the
last visit to be explained; it is not stored, but the rule can be run backwards: only the oldest of the ten outcomes
that it saw may have dropped out since.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf
from typing import Any

import msgspec
from msgspec.structs import replace

from levada.collection.addresses import as_planned, site_notes
from levada.collection.components import learn_from_sample, make_policy
from levada.core.durations import duration, iso, moment, relative
from levada.core.errors import NotFound
from levada.core.reasons import Reason
from levada.core.records import Outcome, PageRecord, PageState, Signals, SiteRecord, Visit
from levada.core.settings import RevisitSettings, Settings
from levada.core.site_rules.pace import SitePaces, revisit_of
from levada.core.site_rules.rules import SiteRules
from levada.core.words import plural, rough, rough_span
from levada.crawl.outcome import PASSING, longest_pause
from levada.freshness import LearnedRevisit
from levada.freshness.explain import BudgetPoint, RateEstimate, freshness_at_budgets, paper_interval
from levada.freshness.signals import SignalSource
from levada.pages.change import is_read_as_default
from levada.pages.unsteady import uncounted_lines
from levada.store.reading import OpenedCollection

LEAST_POWER, _MOST_POWER = -3, 3  # of two: from an eighth of the present budget to eight times it
_HOUR, _DAY = 3_600.0, 86_400.0
_WHO = {
    SignalSource.TAG: ("304", Signals.NOT_MODIFIED | Signals.SAME_TAG),
    SignalSource.DATE: ("Last-Modified", Signals.DATED | Signals.DATE_MOVED),
    SignalSource.SITEMAP: ("sitemap", Signals.SITEMAP),
    SignalSource.FEED: ("feed", Signals.FEED),
}


class SignalRecord(msgspec.Struct, frozen=True):
    """A source of signals about changes, and how far it is trusted."""

    who: str
    said: int  # at how many of the page's known visits
    right: int  # over the visits of the site's pages, where it could be told
    wrong: int
    trust: float


class PageEstimate(msgspec.Struct, frozen=True):
    rate: RateEstimate
    current: float | None  # the chance that the stored copy is; None if nothing is stored
    foretold: float  # share of the changes on its site that a sitemap or feed told of
    price: float  # what a visit to a page of its site must be worth, in seconds
    common_price: float  # to one of a site that can be asked as often as wanted
    importance: float
    interval: float | None  # at which a visit to the page is worth that; None before the first visit
    visits_per_hour: float  # to all pages, that the budget leaves for coming back
    spent_per_hour: float  # of these, what the pages are worth at that price
    pages: int
    heard: tuple[SignalRecord, ...]
    paper_interval: float | None


def learned_policy(collection: OpenedCollection) -> LearnedRevisit:
    """Ours, whichever is set: it knows what the pages are like."""
    settings = collection.settings
    policy = make_policy(replace(settings, revisit=replace(settings.revisit, policy="learned")))
    assert isinstance(policy, LearnedRevisit)
    learn_from_sample(policy, collection.store)
    return policy


def site_limits(collection: OpenedCollection) -> Callable[[str], float]:
    """Visits per second that can be made to a site: what the settings and its own robots.txt allow."""
    paces = SitePaces.of(collection.settings)

    def limit(site: str) -> float:
        known = collection.store.site(site)
        return paces(site).per_second(known.delay if known else None)

    return limit


def estimate_of(collection: OpenedCollection, page: PageRecord, now: float) -> PageEstimate:
    policy = learned_policy(collection)
    policy.limit_site(page.site, site_limits(collection)(page.site))
    rate = RateEstimate.of(policy.estimates.calibrated(page))
    met = page.history[-1].at if page.history else None
    worth_at = policy.visit_after_hint(page, Signals.NOTHING)
    unannounced = policy.estimates.site(page.site).unannounced
    told = policy.estimates.hinted(page, page.told)
    revisit = _revisit_of(collection, page)
    (spent,) = freshness_at_budgets(policy.estimates, [policy.visits_per_second], site_limits(collection))
    return PageEstimate(
        rate=rate,
        current=_current(rate, now - met, unannounced, told) if met is not None and page.version else None,
        foretold=1.0 - unannounced,
        price=policy.price_at(page.site),
        common_price=policy.price(),
        importance=policy.estimates.importance(page.url),
        interval=None if met is None or worth_at is None else worth_at - met,
        visits_per_hour=_HOUR * policy.visits_per_second,
        spent_per_hour=_HOUR * spent.spent,
        pages=policy.estimates.pages,
        heard=tuple(_heard(policy, page, signal_source) for signal_source in SignalSource),
        paper_interval=paper_interval(page.history, revisit.first, revisit.floor, revisit.ceiling),
    )


def _current(rate: RateEstimate, age: float, unannounced: float, told: float) -> float:
    """Where changes are told of, silence is a sign that there was none."""
    return (1.0 - told) * rate.current_after(age if told else unannounced * age)


def _heard(policy: LearnedRevisit, page: PageRecord, signal_source: SignalSource) -> SignalRecord:
    who, words = _WHO[signal_source]
    after_first = (visit for visit in page.history if visit.outcome is not Outcome.FIRST)
    said = sum(bool(visit.said & words) for visit in after_first)
    right, wrong = policy.estimates.site(page.site).counts[2 * signal_source : 2 * signal_source + 2]
    return SignalRecord(who, said, right, wrong, policy.estimates.trust(page, signal_source))


class Why(msgspec.Struct, frozen=True):
    """When a page is visited next, and why; `str` gives one sentence.

    >>> why = news.why(start)
    >>> str(why).startswith("Visited once")
    True
    >>> why.page.next_visit > why.at
    True
    """

    at: float  # now, by the collection's clock
    page: PageRecord  # with its next visit, None where its site was dropped
    because: tuple[str, ...]  # one clause each; the last says when the next visit is
    estimate: PageEstimate
    step: IntervalStep | None  # what the last visit did to the interval
    policy: str  # `revisit.policy`
    found_on: str | None  # the address of the page that named it
    versions: tuple[int, ...]  # that are kept, newest first
    title: str  # of the newest
    site: SiteRecord | None
    site_notes: tuple[str, ...]
    noise: tuple[str, ...] = ()  # lines of the newest version that do not count when it is compared

    def __str__(self) -> str:
        return sentence(list(self.because))

    def facts(self) -> dict[str, Any]:
        """The same for programs: the keys of `levada why --json`."""
        page, step, site, now = self.page, self.step, self.site, self.at
        return {
            **{name: getattr(page, name) for name in ("url", "site", "kind", "state", "reason", "leads_to", "how")},
            "found_at": iso(page.found_at),
            "found_on": self.found_on,
            "depth": page.depth,
            "now": iso(now),
            "visits": page.visits,
            "history": [_visit(visit) for visit in page.history],
            "failures": page.failures,
            "policy": self.policy,
            "sentence": str(self),
            "because": self.because,
            "interval": page.interval,
            "previous_interval": step.before if step else None,
            "previous_interval_exact": step.exact if step else None,
            "next_visit": iso(page.next_visit),
            "next_visit_in": None if page.next_visit is None else page.next_visit - now,
            **_estimate_facts(page, self.estimate, learned=self.policy == "learned"),
            "versions": self.versions,
            "noise": self.noise,
            "site_dropped": site is not None and site.dropped,
            "site_rests_until": iso(site.rest_until) if site and site.rest_until > now else None,
            "site_notes": self.site_notes,
        }


def why(collection: OpenedCollection, page: PageRecord) -> Why:
    """All that explains the next visit of a page."""
    now, store = collection.clock.now(), collection.store
    revisit = _revisit_of(collection, page)
    site = store.site(page.site)
    page = as_planned(page, site)
    estimate = estimate_of(collection, page, now)
    kept = store.versions(page.url)
    return Why(
        at=now,
        page=page,
        because=tuple(explanation(page, revisit, now, estimate.rate)),
        estimate=estimate,
        step=last_step(page, revisit),
        policy=revisit.policy,
        found_on=store.url_of(page.found_on) if page.found_on is not None else None,
        versions=tuple(each.version for each in kept),
        title=kept[0].title if kept else "",
        site=site,
        site_notes=tuple(site_notes(collection, page, now)),
        noise=_noise_of(collection, page) if kept else (),
    )


def _noise_of(collection: OpenedCollection, page: PageRecord) -> tuple[str, ...]:
    """The noise in the text of a page. Other readers than the built-in one, and a rule, say themselves what counts."""
    stored = collection.store.document(page.url) if is_read_as_default(page.text_digest) else None
    return () if stored is None else tuple(uncounted_lines(stored.text, stored.title, page.text_digest))


def _revisit_of(collection: OpenedCollection, page: PageRecord) -> RevisitSettings:
    """The revisit settings of a page, by the rule of its site."""
    rule = SiteRules(collection.settings.site).rule_for(page.url)
    return revisit_of(rule, collection.settings.revisit)


def _estimate_facts(page: PageRecord, estimate: PageEstimate, *, learned: bool) -> dict[str, Any]:
    rate, paper = estimate.rate, estimate.paper_interval
    return {
        "rate_per_day": _DAY / rate.median,
        "rate_low": _DAY / rate.high,
        "rate_high": _DAY / rate.low,
        "chance_static": rate.static,
        "believed_current": estimate.current,
        "rates": [
            {"per_day": _DAY * each, "chance": chance}
            for each, chance in zip(rate.rates, rate.probabilities, strict=True)
        ],
        "price_seconds": estimate.price if learned else None,
        "common_price_seconds": estimate.common_price if learned else None,
        "interval_at_price": estimate.interval if learned else None,
        "importance": estimate.importance,
        "budget_per_hour": estimate.visits_per_hour if learned else None,
        "hearsay": estimate.heard,
        "foretold": estimate.foretold,
        "told": _words(page.told),
        "paper_interval": paper,
        "paper_interval_exact": None if paper is None else page.history[0].outcome is Outcome.FIRST,
        "paper_next_visit": None if paper is None else iso(page.history[-1].at + paper),
    }


def _visit(visit: Visit) -> dict[str, Any]:
    outcome, said = visit.outcome.name.lower(), _words(visit.said)
    return {"at": iso(visit.at), "outcome": outcome, "similarity": visit.similarity, "said": said}


def _words(said: Signals) -> list[str]:
    return [str(each.name).lower().replace("_", "-") for each in said]


_COMPARED = (Outcome.FIRST, Outcome.UNCHANGED, Outcome.CHANGED)
_REMEMBERED = 10
_SURELY_SOONER = 4.0  # a visit so many times earlier than any likely change is made in doubt
_LEADS = {Reason.REDIRECTED: "redirects to", Reason.DUPLICATE: "is a copy of"}
_TELLERS = (("sitemap", Signals.SITEMAP), ("feed", Signals.FEED))


class IntervalStep(msgspec.Struct, frozen=True):
    """What the last visit that compared content did to the interval."""

    before: float | None  # None: there was none, or it cannot be told
    after: float
    exact: bool = True  # False: an outcome that the rule saw has dropped out of the history
    held_at: str = ""  # "floor" or "ceiling"


def last_step(page: PageRecord, revisit: RevisitSettings) -> IntervalStep | None:
    """The last step of the paper's rule; None before a visit has compared content."""
    compared = [visit for visit in page.history if visit.outcome in _COMPARED]
    if page.interval is None or not compared:
        return None
    # A page that had gone begins anew when it comes back: its interval is just the first one again.
    if page.interval == revisit.first or revisit.policy != "ema":
        return IntervalStep(None, page.interval)
    if page.interval <= revisit.floor:
        return IntervalStep(None, page.interval, held_at="floor")
    if page.interval >= revisit.ceiling:
        return IntervalStep(None, page.interval, held_at="ceiling")
    earlier = page.history[: page.history.index(compared[-1])]
    changes = sum(visit.outcome is Outcome.CHANGED for visit in earlier)
    changed = compared[-1].outcome is Outcome.CHANGED
    before = page.interval * (1.3 + 0.08 * changes) if changed else page.interval / (1.2 + 0.08 * changes)
    return IntervalStep(before, page.interval, exact=page.visits <= _REMEMBERED)


def sentence(parts: list[str]) -> str:
    """An account as one sentence."""
    *reasons, end = parts
    if not reasons:
        return f"{end[0].upper()}{end[1:]}."
    told = "; ".join(reasons)
    return f"{told[0].upper()}{told[1:]}{';' if ':' in reasons[-1] else ':'} {end}."


def explanation(page: PageRecord, revisit: RevisitSettings, now: float, rate: RateEstimate | None = None) -> list[str]:
    """The reasons for the next visit, one clause each; the last says when it is."""
    said = [_visits(page), *_interval(page, revisit, rate), *_trouble(page, revisit), _signals(page)]
    return [clause for clause in said if clause] + [_next(page, now)]


def _visits(page: PageRecord) -> str:
    if not page.visits:
        return "never visited yet"
    compared = sum(visit.outcome in _COMPARED for visit in page.history)
    if not compared:
        return f"{plural(page.visits, 'visit')}, none of which met a page"
    if page.visits == 1:
        return "visited once"
    changed = sum(visit.outcome is Outcome.CHANGED for visit in page.history)
    last = "the last " if page.visits > len(page.history) else ""
    return f"changed {changed} of {last}{len(page.history)} visits"


def _interval(page: PageRecord, revisit: RevisitSettings, rate: RateEstimate | None) -> list[str]:
    step = last_step(page, revisit)
    if step is None:
        return []
    every = duration(step.after)
    if page.state is PageState.ELSEWHERE:
        leads = _LEADS.get(page.reason or Reason.GONE, "leads to")  # it may have failed since
        return [f"it {leads} {page.leads_to}, and is looked at again after {every}"]
    if revisit.policy == "learned":
        return [_learned(page, step.after, revisit, rate)] if rate else []
    if revisit.policy == "fixed":
        return [f"every page is visited every {every}, whatever it does"]
    if revisit.policy != "ema":
        return [f"the rule {revisit.policy!r} came to an interval of {every}"]
    if step.held_at:
        return [f"the interval is held at the {step.held_at} of {every}"]
    if step.before is None:
        return [f"the first interval is {every}"]
    about = "" if step.exact else "about "
    met = "a change" if step.after < step.before else "no change"
    return [f"the last visit met {met}: the interval went from {about}{_pair(step.before, step.after)}"]


def _learned(page: PageRecord, interval: float, revisit: RevisitSettings, rate: RateEstimate) -> str:
    words = rate_words(rate)
    if len(page.history) == 1:
        words = f"if it is like the others, it {words}"
    every = duration(interval)
    if interval <= 1.001 * revisit.floor:
        return f"{words}, so it is visited as often as may be, every {every} (revisit.floor)"
    if interval >= 0.999 * revisit.ceiling:
        return f"{words}, so it is visited as seldom as allowed, every {every} (revisit.ceiling)"
    if interval < rate.low / _SURELY_SOONER:
        return f"{words}; as that is not certain, a visit is worth its price after {every}"
    return f"{words}, so a visit is worth its price after {every}"


def rate_words(rate: RateEstimate) -> str:
    """`changes about every 3 h (between 1.5 and 7 h)`; the range has a chance of eight in ten."""
    if rate.high < inf:
        return f"changes about every {rough(rate.median)} ({rough_span(rate.low, rate.high)})"
    if rate.median < inf:
        often = f"perhaps never, hardly more often than every {rough(rate.low)}"
        return f"changes about every {rough(rate.median)} ({often})"
    if rate.low < inf:
        return f"probably never changes ({rate.static:.0%}), or hardly more often than every {rough(rate.low)}"
    return f"never changes, as far as can be seen ({rate.static:.0%})"


def _pair(before: float, after: float) -> str:
    """`60 to 46 min`: both in the unit of the smaller, unless that would be long."""
    if max(before, after) < 7_200:
        return f"{_number(before / 60)} to {_number(after / 60)} min"
    return f"{duration(before)} to {duration(after)}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def _trouble(page: PageRecord, revisit: RevisitSettings) -> list[str]:
    if not page.failures:
        return []
    times = "the last visit" if page.failures == 1 else f"the last {page.failures} visits"
    because = f" ({page.reason})" if page.reason else ""
    if page.state is PageState.QUARANTINED:
        return [f"{times} killed the parser: the page is not read again"]
    if page.reason is Reason.RULE:
        return ["a rule of its site keeps it out: it is not asked for, and what is stored of it stays"]
    if page.reason in PASSING:
        most = duration(longest_pause(page, revisit))
        return [f"{times} failed{because}: tried again after {duration(revisit.retry)}, doubling up to {most}"]
    refused = f"was refused{because}" if page.failures == 1 else f"were refused{because}"
    what = "found it gone" if page.reason is Reason.GONE else refused
    pause, most = duration(revisit.gone), duration(revisit.ceiling)
    return [f"{times} {what}: looked at again after {pause}, doubling up to {most}"]


def _signals(page: PageRecord) -> str:
    """Who told of a change, if that has brought the visit forward."""
    if not page.told or not page.history or page.next_visit is None or page.interval is None:
        return ""
    if page.next_visit > page.history[-1].at + page.interval - 1.0:
        return ""
    tellers = " and ".join(name for name, said in _TELLERS if page.told & said)
    return f"a {tellers} told of a change since the last visit" if tellers else ""


def _next(page: PageRecord, now: float) -> str:
    if page.next_visit is None:
        return "no next visit"
    if page.next_visit > now:
        return f"next visit {relative(page.next_visit, now)} ({moment(page.next_visit)})"
    if not page.visits:
        return f"first visit due since {duration(now - page.next_visit)}, in the order of priority"
    return f"next visit due since {duration(now - page.next_visit)}"


class Forecast(msgspec.Struct, frozen=True):
    """The freshness that other budgets are estimated to buy.

    >>> forecast = news.forecast()
    >>> forecast.points[0].fresh <= forecast.present.fresh <= forecast.points[-1].fresh
    True
    """

    settings: Settings
    pages: int
    current: float | None  # estimated share of pages that are current now
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
