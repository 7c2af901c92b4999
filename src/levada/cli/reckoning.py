"""Why is a page visited again just then? Pure: what is known of it in, sentences for a person out.

The paper's rule needs the interval before the last visit to be explained; it is not stored, but the rule can be
run backwards: only the oldest of the ten outcomes that it saw may have dropped out since.
"""

from __future__ import annotations

import msgspec

from levada.cli.duration import duration, moment, relative
from levada.cli.printing import plural
from levada.flow.settings import RevisitSettings
from levada.flow.settling import PASSING
from levada.reasons import Reason
from levada.records import Outcome, PageRecord, PageState

__all__ = ["Step", "account", "last_step"]

_COMPARED = (Outcome.FIRST, Outcome.UNCHANGED, Outcome.CHANGED)
_REMEMBERED = 10


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


def account(page: PageRecord, revisit: RevisitSettings, now: float) -> list[str]:
    """The reasons for the next visit, one sentence each; the last says when it is."""
    said = [_visits(page), *_interval(page, revisit), *_trouble(page, revisit)]
    return [sentence for sentence in said if sentence] + [_next(page, now)]


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


def _interval(page: PageRecord, revisit: RevisitSettings) -> list[str]:
    step = last_step(page, revisit)
    if step is None:
        return []
    if revisit.policy == "fixed":
        return [f"every page is visited every {duration(step.after)}, whatever it does"]
    if step.held_at:
        return [f"the interval is held at the {step.held_at} of {duration(step.after)}"]
    if step.before is None:
        return [f"the first interval is {duration(step.after)}"]
    about = "" if step.exact else "about "
    met = "a change" if step.after < step.before else "no change"
    return [f"the last visit met {met}: the interval went from {about}{_pair(step.before, step.after)}"]


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
        most = duration(revisit.max_retry)
        return [f"{times} failed{because}: tried again after {duration(revisit.retry)}, doubling up to {most}"]
    refused = f"was refused{because}" if page.failures == 1 else f"were refused{because}"
    what = "found it gone" if page.reason is Reason.GONE else refused
    pause, most = duration(revisit.gone), duration(revisit.ceiling)
    return [f"{times} {what}: looked at again after {pause}, doubling up to {most}"]


def _next(page: PageRecord, now: float) -> str:
    if page.next_visit is None:
        return "no next visit"
    if page.next_visit > now:
        return f"next visit {relative(page.next_visit, now)} ({moment(page.next_visit)})"
    if not page.visits:
        return f"first visit due since {duration(now - page.next_visit)}, in the order of priority"
    return f"next visit due since {duration(now - page.next_visit)}"
