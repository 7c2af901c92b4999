"""Shared changes: events of a site that change many of its pages at once, such as a deploy or a new template.

Each site has a timeline: how many such events are expected in each of a few spans of the recent past, given what the
visits found. Time without a visit adds the site's usual number of events. A visit looks back to the visit before it.
If the page did not change, it takes from those spans the events that would have changed it. If it did, they become as
much more likely as they explain the change better than the page's own rate does. So a change met on one page is
evidence about all pages that were not visited since, a quiet visit too, and a change that an event explains says
little about the page's own rate.

How likely an event is to change a page is learnt for each page, starting from its site's. The events of a span are
taken for Poisson distributed, so both updates are exact for their expectation. Events count for a page only as far as
other pages gave evidence of them, and for a site only where they explain more than the pages' own rates: otherwise
what looks like events are the busy hours of the site.

The functions work on plain rows of floats in place, so that the laboratory can compile them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import MutableSequence, Sequence

# Tuned on seeds from 101 on of the laboratory's worlds; the results are flat around these values.
_SPANS = 24
_EVENTS_BEFORE, _SECONDS_BEFORE = 0.02, 3 * 86_400.0  # the prior of a site: one event in five months
_CAUGHT_BEFORE, _COVERED_BEFORE = 1.0, 2.0  # the prior of a site: an event changes half of the pages
_LIKE_SITE = 1.5  # events: the weight of the site in the estimate of a page
_FIRST_EVIDENCE = 0.02  # changes: as long as there is none from other pages, next to nothing counts
_CLEAR_BEFORE, _UNCLEAR, _CLEAR = 3.0, 0.75, 0.85  # of the changes foreseen, the share that events explain
_LOOK_WORTH = 0.1  # of what a sentinel's visit could tell of other pages, so much is counted
_MOST_AT_ONCE = 4.0  # events: changes that come together are no evidence of more
_NEWS = 0.25  # events: with so many more the other pages are planned again
FORESEEN = 0.15  # the least probability of a shared change that brings a visit forward
_MOST_COVERED, _MOST_COVERED_HERE = 16.0, 400.0  # events: then the earlier half is forgotten, of a page and of a site
_MOST_UNSEEN = 3.0  # events in a time without visits: more make no difference
_LONGEST = 180 * 86_400.0  # the same of the time of a site
_SAME_MOMENT = 600.0  # seconds between the dates that one deploy gives to its files
_ONE_DEPLOY = 2.0  # pages with a date, before it is that of a deploy

# Places in the row of a site.
_COUNT, _EVENTS, _SINCE, _CAUGHT, _COVERED, _BY_EVENTS, _BY_THEMSELVES, _NEXT_LOOK, _TOLD, _DATE, _DATED = range(11)
_BOUNDS = 11
_EXPECTED = _BOUNDS + _SPANS + 1
SITE_WIDTH = _EXPECTED + _SPANS
PAGE_WIDTH = 2  # how many events changed the page, and how many could have


def events_per_second(site: Sequence[float], now: float) -> float:
    """The usual number of events of a site."""
    return (_EVENTS_BEFORE + site[_EVENTS]) / (_SECONDS_BEFORE + max(0.0, now - site[_SINCE]))


def takes_part(site: Sequence[float], page: Sequence[float]) -> float:
    """How likely an event of the site is to change the page."""
    usual = (_CAUGHT_BEFORE + site[_CAUGHT]) / (_COVERED_BEFORE + site[_COVERED])
    return min((_LIKE_SITE * usual + page[0]) / (_LIKE_SITE + page[1]), 1.0)


def shared_chance(site: Sequence[float], page: Sequence[float], then: float, now: float) -> float:
    """The probability that an event changed the page since `then`; time without a visit has the usual events."""
    events = events_since(site, then)
    unseen = now - max(site[_BOUNDS + int(site[_COUNT])], then)
    if unseen > 0.0:
        events += min(unseen * events_per_second(site, now), _MOST_UNSEEN)
    return 1.0 - math.exp(-takes_part(site, page) * _seen_by_others(site, page) * _clear(site) * events)


def look(
    site: MutableSequence[float],
    page: MutableSequence[float],
    then: float,
    now: float,
    changed: bool,
    own: float,
) -> float:
    """Take a visit into the timeline; `own` is how likely a change of the page alone was since `then`.

    Returns how likely a shared change was, before it was known what the visit found.
    """
    _advance(site, now)
    part = takes_part(site, page)
    possible = _seen_by_others(site, page) * events_since(site, then)
    credited = 1.0 - math.exp(-part * _clear(site) * possible)
    shared = 1.0 - math.exp(-part * possible)
    caught = part * possible / max(1.0 - (1.0 - own) * (1.0 - shared), 1e-9) if changed else 0.0
    left = min((1.0 - part) * possible + caught, max(possible, _MOST_AT_ONCE))
    if possible > 0.0:
        _multiply(site, then, left / possible)
    page[0] += caught
    page[1] += left
    if page[1] > _MOST_COVERED:
        page[0], page[1] = page[0] * _MOST_COVERED / page[1] / 2.0, _MOST_COVERED / 2.0
    site[_CAUGHT] += caught
    site[_COVERED] += left
    if site[_COVERED] > _MOST_COVERED_HERE:
        site[_CAUGHT], site[_COVERED] = site[_CAUGHT] / 2.0, site[_COVERED] / 2.0
    if shared >= FORESEEN:
        site[_BY_EVENTS] += shared
        site[_BY_THEMSELVES] += own
        if site[_BY_EVENTS] > _MOST_COVERED_HERE:
            site[_BY_EVENTS], site[_BY_THEMSELVES] = site[_BY_EVENTS] / 2.0, site[_BY_THEMSELVES] / 2.0
    return credited


def begin(site: MutableSequence[float], now: float) -> None:
    """Take a first visit to a page of the site: it has nothing to compare."""
    if site[_COUNT] == 0.0 and site[_BOUNDS] == 0.0:
        site[_SINCE] = site[_BOUNDS] = now
    _advance(site, now)


def has_news(site: MutableSequence[float]) -> bool:
    """Whether events are so much more likely than when this was last true that other pages should be planned again."""
    site[_TOLD] = min(site[_TOLD], site[_EVENTS])
    if site[_EVENTS] < site[_TOLD] + _NEWS or _clear(site) == 0.0:
        return False
    site[_TOLD] = site[_EVENTS]
    return True


def sentinel_wait(site: MutableSequence[float], page: Sequence[float], pages: float, price: float, now: float) -> float:
    """The seconds after which a visit is worth `price` for what it tells of the other pages; infinity for most pages.

    One page of a site at a time is the sentinel: another one takes over once its visit is due, whichever is visited.
    """
    if pages <= 1.0 or site[_NEXT_LOOK] > now:
        return math.inf
    part, rate = takes_part(site, page), events_per_second(site, now)
    worth = _LOOK_WORTH * (pages - 1.0) * part * part * rate  # of t seconds: worth t^2 / (1 + rate t)
    wait = (price * rate + math.sqrt(price * price * rate * rate + 4.0 * worth * price)) / (2.0 * worth)
    site[_NEXT_LOOK] = now + wait
    return wait


def same_date(site: MutableSequence[float], date: float) -> bool:
    """Take the date of a page; returns whether it is that of a deploy, which dates all files alike and is one fact."""
    if abs(date - site[_DATE]) > _SAME_MOMENT or site[_DATED] == 0.0:
        if site[_DATED] > _ONE_DEPLOY:  # one page with another date does not end it
            site[_DATED] -= 1.0
            return False
        site[_DATE], site[_DATED] = date, 1.0
        return False
    site[_DATED] = min(site[_DATED] + 1.0, 2.0 * _ONE_DEPLOY)
    return site[_DATED] > _ONE_DEPLOY


def events_since(site: Sequence[float], then: float) -> float:
    """The expected number of events since `then` that no visit has ruled out, up to the last visit."""
    total = 0.0
    span = int(site[_COUNT]) - 1
    while span >= 0:
        low, high = site[_BOUNDS + span], site[_BOUNDS + span + 1]
        if then >= high:
            break
        part = 1.0 if then <= low else (high - then) / (high - low)
        total += part * site[_EXPECTED + span]
        span -= 1
    return total


def _seen_by_others(site: Sequence[float], page: Sequence[float]) -> float:
    """The share of the evidence for the events of a site that comes from other pages."""
    return (_FIRST_EVIDENCE + max(0.0, site[_CAUGHT] - page[0])) / (_FIRST_EVIDENCE + site[_CAUGHT])


def _clear(site: Sequence[float]) -> float:
    """How far the events of a site count: not at all where the pages' own rates explain nearly as much."""
    explained = _CLEAR_BEFORE + site[_BY_EVENTS]
    return min(max((explained / (explained + site[_BY_THEMSELVES]) - _UNCLEAR) / (_CLEAR - _UNCLEAR), 0.0), 1.0)


def _advance(site: MutableSequence[float], now: float) -> None:
    """Add the time since the last visit as a span of its own."""
    count = int(site[_COUNT])
    if now <= site[_BOUNDS + count]:
        return
    if now - site[_SINCE] > _LONGEST:
        site[_SINCE] = now - _LONGEST / 2.0
        site[_EVENTS] /= 2.0
    if count == _SPANS:
        _merge(site)
        count -= 1
    new = min(events_per_second(site, now) * (now - site[_BOUNDS + count]), _MOST_UNSEEN)
    site[_BOUNDS + count + 1] = now
    site[_EXPECTED + count] = new
    site[_EVENTS] += new
    site[_COUNT] = count + 1.0


def _merge(site: MutableSequence[float]) -> None:
    """Merge the two neighbouring spans that differ least; of equal ones the oldest."""
    best, at = math.inf, 0
    for span in range(_SPANS - 1):
        one = site[_BOUNDS + span + 1] - site[_BOUNDS + span]
        other = site[_BOUNDS + span + 2] - site[_BOUNDS + span + 1]
        difference = abs(site[_EXPECTED + span] * other - site[_EXPECTED + span + 1] * one) / (one + other)
        if difference < best:
            best, at = difference, span
    site[_EXPECTED + at] += site[_EXPECTED + at + 1]
    for span in range(at + 1, _SPANS - 1):
        site[_EXPECTED + span] = site[_EXPECTED + span + 1]
    for span in range(at + 1, _SPANS):
        site[_BOUNDS + span] = site[_BOUNDS + span + 1]


def _multiply(site: MutableSequence[float], then: float, factor: float) -> None:
    """Multiply the events since `then`."""
    # The walk of `events_since`, repeated because compiled functions cannot share a loop with different steps in it.
    span = int(site[_COUNT]) - 1
    while span >= 0:
        low, high = site[_BOUNDS + span], site[_BOUNDS + span + 1]
        if then >= high:
            break
        part = 1.0 if then <= low else (high - then) / (high - low)
        before = site[_EXPECTED + span]
        site[_EXPECTED + span] = before * (1.0 - part + part * factor)
        site[_EVENTS] = max(0.0, site[_EVENTS] + site[_EXPECTED + span] - before)
        span -= 1


_MOST_SITES = 10_000
_NOTHING = array("d", bytes(8 * SITE_WIDTH))


class Timelines:
    """The timelines of sites: of more than ten thousand, those that were seen first are forgotten."""

    def __init__(self) -> None:
        self._rows: dict[str, array[float]] = {}

    def of(self, site: str) -> Sequence[float]:
        """The row of a site, to read; that of a site without visits if there is none."""
        return self._rows.get(site, _NOTHING)

    def begun(self, site: str) -> array[float]:
        """The row of a site, to change."""
        row = self._rows.get(site)
        if row is None:
            if len(self._rows) >= _MOST_SITES:
                del self._rows[next(iter(self._rows))]
            row = self._rows[site] = array("d", _NOTHING)
        return row
