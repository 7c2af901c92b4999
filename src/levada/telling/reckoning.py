"""Why is a page visited again just then? Pure: what is known of it in, sentences for a person out.

Ours weighs what is believed of a page's changes against a price. The paper's rule needs the interval before the
last visit to be explained; it is not stored, but the rule can be run backwards: only the oldest of the ten outcomes
that it saw may have dropped out since.
"""

from __future__ import annotations

from math import inf

import msgspec

from levada.flow.settings import RevisitSettings
from levada.flow.settling import PASSING, longest_pause
from levada.freshness.explain import RateBelief
from levada.reasons import Reason
from levada.records import Outcome, PageRecord, PageState, Said
from levada.telling.duration import duration, moment, relative
from levada.telling.words import plural, rough, rough_span

__all__ = ["Step", "account", "last_step", "rate_words", "sentence"]

_COMPARED = (Outcome.FIRST, Outcome.UNCHANGED, Outcome.CHANGED)
_REMEMBERED = 10
_SURELY_SOONER = 4.0  # a visit so many times earlier than any likely change is made in doubt
_LEADS = {Reason.REDIRECTED: "redirects to", Reason.DUPLICATE: "is a copy of"}
_TELLERS = (("sitemap", Said.SITEMAP), ("feed", Said.FEED))


class Step(msgspec.Struct, frozen=True):
    """What the last visit that compared content did to the interval."""

    before: float | None  # None: there was none, or it cannot be told
    after: float
    exact: bool = True  # False: an outcome that the rule saw has dropped out of the history
    held_at: str = ""  # "floor" or "ceiling"


def last_step(page: PageRecord, revisit: RevisitSettings) -> Step | None:
    """None while there was no visit to reckon from."""
    compared = [visit for visit in page.history if visit.outcome in _COMPARED]
    if page.interval is None or not compared:
        return None
    # A page that had gone begins anew when it comes back: its interval is just the first one again.
    if page.interval == revisit.first or revisit.policy != "ema":
        return Step(None, page.interval)
    if page.interval <= revisit.floor:
        return Step(None, page.interval, held_at="floor")
    if page.interval >= revisit.ceiling:
        return Step(None, page.interval, held_at="ceiling")
    earlier = page.history[: page.history.index(compared[-1])]
    changes = sum(visit.outcome is Outcome.CHANGED for visit in earlier)
    changed = compared[-1].outcome is Outcome.CHANGED
    before = page.interval * (1.3 + 0.08 * changes) if changed else page.interval / (1.2 + 0.08 * changes)
    return Step(before, page.interval, exact=page.visits <= _REMEMBERED)


def sentence(parts: list[str]) -> str:
    """An account as one sentence."""
    *reasons, end = parts
    if not reasons:
        return f"{end[0].upper()}{end[1:]}."
    told = "; ".join(reasons)
    return f"{told[0].upper()}{told[1:]}{';' if ':' in reasons[-1] else ':'} {end}."


def account(page: PageRecord, revisit: RevisitSettings, now: float, rate: RateBelief | None = None) -> list[str]:
    """The reasons for the next visit, one clause each; the last says when it is."""
    said = [_visits(page), *_interval(page, revisit, rate), *_trouble(page, revisit), _hearsay(page)]
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


def _interval(page: PageRecord, revisit: RevisitSettings, rate: RateBelief | None) -> list[str]:
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


def _learned(page: PageRecord, interval: float, revisit: RevisitSettings, rate: RateBelief) -> str:
    words = rate_words(rate)
    if len(page.history) == 1:
        words = f"if it is like the others, it {words}"
    every = duration(interval)
    if interval <= 1.001 * revisit.floor:
        return f"{words}, so it is visited as often as may be, every {every} (revisit.floor)"
    if interval >= 0.999 * revisit.ceiling:
        return f"{words}, so it is visited as seldom as may be, every {every} (revisit.ceiling)"
    if interval < rate.low / _SURELY_SOONER:
        return f"{words}; as that is not certain, a visit is worth its price after {every}"
    return f"{words}, so a visit is worth its price after {every}"


def rate_words(rate: RateBelief) -> str:
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
    if page.reason in PASSING:
        most = duration(longest_pause(page, revisit))
        return [f"{times} failed{because}: tried again after {duration(revisit.retry)}, doubling up to {most}"]
    refused = f"was refused{because}" if page.failures == 1 else f"were refused{because}"
    what = "found it gone" if page.reason is Reason.GONE else refused
    pause, most = duration(revisit.gone), duration(revisit.ceiling)
    return [f"{times} {what}: looked at again after {pause}, doubling up to {most}"]


def _hearsay(page: PageRecord) -> str:
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
