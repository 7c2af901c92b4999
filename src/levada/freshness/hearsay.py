"""How far are others to be believed who tell of a page's changes?

Servers answer 304 and date their pages, sitemaps and feeds name dates. Each visit keeps what was said before it
(`Said`) beside what it met; over the visits of a site's pages that tells, for each who speaks, how often it was
right when it mattered, and which share of the changes was foretold at all: what nobody told of on a site that
tells of most changes has probably not changed. Pages, too, may speak without having anything to say: where they
differ by next to nothing even minutes apart, such a difference is no sign of a change. A site of which nothing is
known yet gets the benefit of part of the doubt when it speaks, and none for its silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from math import inf

from levada.records import Outcome, Said, Visit

__all__ = ["MANY", "Speaker", "is_small", "noise", "tally", "trust", "unsaid"]


class Speaker(IntEnum):
    TAG = 0  # 304, and the entity tags or dates it rests on
    DATE = 1  # Last-Modified
    SITEMAP = 2
    FEED = 3


MANY = (
    2 * len(Speaker) + 4
)  # right and wrong of each; changes, those foretold; visits soon after one, small changes
_CHANGES, _FORETOLD, _SOON, _SMALL = range(MANY - 4, MANY)
_SOON_SECONDS = 900.0
_QUIET_BEFORE = 5.0  # as if so many visits soon after another had met nothing
_UNTOLD_BEFORE = 5.0  # as if there had been so many changes that nobody told of
_LEAST_UNSAID = 0.1

# As if each had been right and wrong so often before: hardly a server lies with 304.
_BEFORE = {Speaker.TAG: (9.0, 1.0), Speaker.DATE: (3.0, 1.0), Speaker.SITEMAP: (1.0, 1.0), Speaker.FEED: (1.0, 1.0)}


def tally(history: Iterable[Visit]) -> list[int]:
    """Who was right and wrong how often, over the visits of one page."""
    counts = [0] * MANY
    before = inf
    for visit in history:
        if 0.0 < visit.at - before < _SOON_SECONDS:
            counts[_SOON] += 1
            counts[_SMALL] += is_small(visit)
        before = visit.at
        if visit.outcome is Outcome.CHANGED and not visit.said & Said.EARLY:  # those are foretold by their nature
            counts[_CHANGES] += 1
            counts[_FORETOLD] += bool(visit.said & (Said.SITEMAP | Said.FEED))
        if visit.said and visit.outcome in (Outcome.UNCHANGED, Outcome.CHANGED):
            for speaker, right in _verdicts(visit.said, visit.outcome is Outcome.CHANGED):
                counts[2 * speaker + (not right)] += 1
    return counts


def trust(counts: Sequence[int], speaker: Speaker) -> float:
    right, wrong = _BEFORE[speaker]
    right, wrong = right + counts[2 * speaker], wrong + counts[2 * speaker + 1]
    return right / (right + wrong)


def is_small(visit: Visit) -> bool:
    """A change that the grade of similarity does not even show: a counter, a date, a word among hundreds."""
    return visit.outcome is Outcome.CHANGED and visit.similarity >= 1.0


def noise(counts: Sequence[int]) -> float:
    """How often the site's pages look a little different only minutes later: so often it says nothing."""
    return counts[_SMALL] / (counts[_SOON] + _QUIET_BEFORE)


def unsaid(counts: Sequence[int]) -> float:
    """The share of changes that nobody tells of."""
    return max(_LEAST_UNSAID, 1.0 - counts[_FORETOLD] / (counts[_CHANGES] + _UNTOLD_BEFORE))


def _verdicts(said: Said, changed: bool) -> Iterable[tuple[Speaker, bool]]:
    """Only what could have been wrong counts: that an unmoved date meets no change says nothing of dates."""
    if said & Said.SAME_TAG:
        yield Speaker.TAG, not changed
    if said & Said.DATE_MOVED:
        yield Speaker.DATE, changed
    elif said & Said.DATED and changed:
        yield Speaker.DATE, False
    if said & Said.SITEMAP:
        yield Speaker.SITEMAP, changed
    if said & Said.FEED:
        yield Speaker.FEED, changed
