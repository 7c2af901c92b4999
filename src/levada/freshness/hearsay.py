"""How far are others to be believed who tell of a page's changes?

Servers answer 304 and date their pages, sitemaps and feeds name dates. Each visit keeps what was said before it
(`Said`) beside what it met; over the visits of a site's pages that tells, for each who speaks, how often it was
right when it mattered, and which share of the changes was foretold at all: what nobody told of on a site that
tells of most changes has probably not changed. A site of which nothing is known yet gets the benefit of part of the
doubt when it speaks, and none for its silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from levada.records import Outcome, Said, Visit

__all__ = ["MANY", "Speaker", "tally", "trust", "unsaid"]


class Speaker(IntEnum):
    TAG = 0  # 304, and the entity tags it rests on
    DATE = 1  # Last-Modified
    SITEMAP = 2
    FEED = 3


MANY = 2 * len(Speaker) + 2  # counts: right and wrong of each, then changes, and those foretold
_CHANGES, _FORETOLD = MANY - 2, MANY - 1
_UNTOLD_BEFORE = 5.0  # as if there had been so many changes that nobody told of
_LEAST_UNSAID = 0.1

# As if each had been right and wrong so often before: hardly a server lies with 304.
_BEFORE = {Speaker.TAG: (9.0, 1.0), Speaker.DATE: (3.0, 1.0), Speaker.SITEMAP: (1.0, 1.0), Speaker.FEED: (1.0, 1.0)}


def tally(history: Iterable[Visit]) -> list[int]:
    """Who was right and wrong how often, over the visits of one page."""
    counts = [0] * MANY
    for visit in history:
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
