"""Signal trust: how often the sources of signals were right before.

Servers answer 304 and date their pages; sitemaps and feeds state dates. Each visit records the signals before it
(`Signals`) and its outcome. Over the visits of a site's pages this gives the trust in each source, and the share of
changes that were announced: on a site that announces most changes, a page without a hint has probably not changed.
Some pages differ a little even minutes apart; there a small difference is noise and no sign of a change. For a new
site, signals are trusted partly, and the lack of hints says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from math import inf

from levada.core.records import Outcome, Signals, Visit


class SignalSource(IntEnum):
    TAG = 0  # 304, and the entity tags or dates that it is based on
    DATE = 1  # Last-Modified
    SITEMAP = 2
    FEED = 3


# The counts: right and wrong of each source; changes, announced ones; visits soon after another, small changes.
MANY = 2 * len(SignalSource) + 4
_CHANGES, _ANNOUNCED, _SOON, _SMALL = range(MANY - 4, MANY)
_SOON_SECONDS = 900.0
_QUIET_BEFORE = 5.0  # the prior: visits soon after another without a change
_UNANNOUNCED_BEFORE = 5.0  # the prior: changes without a hint
_LEAST_UNANNOUNCED = 0.1

# The prior of each source, right and wrong: hardly any server answers a false 304.
_BEFORE = {
    SignalSource.TAG: (9.0, 1.0),
    SignalSource.DATE: (3.0, 1.0),
    SignalSource.SITEMAP: (1.0, 1.0),
    SignalSource.FEED: (1.0, 1.0),
}


def tally(history: Iterable[Visit]) -> list[int]:
    """The counts over the visits of one page."""
    counts = [0] * MANY
    before = inf
    for visit in history:
        if 0.0 < visit.at - before < _SOON_SECONDS:
            counts[_SOON] += 1
            counts[_SMALL] += is_small(visit)
        before = visit.at
        if visit.outcome is Outcome.CHANGED and not visit.said & Signals.EARLY:  # early visits always have a hint
            counts[_CHANGES] += 1
            counts[_ANNOUNCED] += bool(visit.said & (Signals.SITEMAP | Signals.FEED))
        if visit.said and visit.outcome in (Outcome.UNCHANGED, Outcome.CHANGED):
            for signal_source, right in _verdicts(visit.said, visit.outcome is Outcome.CHANGED):
                counts[2 * signal_source + (not right)] += 1
    return counts


def trust(counts: Sequence[int], signal_source: SignalSource) -> float:
    right, wrong = _BEFORE[signal_source]
    right, wrong = right + counts[2 * signal_source], wrong + counts[2 * signal_source + 1]
    return right / (right + wrong)


def is_small(visit: Visit) -> bool:
    """Whether the change is too small for the similarity to show: a counter, a date, a word among hundreds."""
    return visit.outcome is Outcome.CHANGED and visit.similarity >= 1.0


def noise(counts: Sequence[int]) -> float:
    """How often pages of the site differ a little only minutes later."""
    return counts[_SMALL] / (counts[_SOON] + _QUIET_BEFORE)


def unannounced(counts: Sequence[int]) -> float:
    """The share of changes without a hint."""
    return max(_LEAST_UNANNOUNCED, 1.0 - counts[_ANNOUNCED] / (counts[_CHANGES] + _UNANNOUNCED_BEFORE))


def _verdicts(signals: Signals, changed: bool) -> Iterable[tuple[SignalSource, bool]]:
    """Each source that could have been wrong, and whether it was right: an old date of an old page says nothing."""
    if signals & Signals.SAME_TAG:
        yield SignalSource.TAG, not changed
    if signals & Signals.DATE_MOVED:
        yield SignalSource.DATE, changed
    elif signals & Signals.DATED and changed:
        yield SignalSource.DATE, False
    if signals & Signals.SITEMAP:
        yield SignalSource.SITEMAP, changed
    if signals & Signals.FEED:
        yield SignalSource.FEED, changed
