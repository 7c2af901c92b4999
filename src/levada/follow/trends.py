"""Trending terms: those that grew most against their own past.

A change is a trial in which a term was added or not. In one language, `now` of the `changes` in the window added
it, and `past` of the `past_changes` in the seven windows before. The score is the log-likelihood ratio of two
shares against one (T. Dunning, Accurate methods for the statistics of surprise and coincidence, 1993): it asks for
evidence rather than for a large quotient, and stays sound for rare terms. Two floors: at least `LEAST` changes
added it, and chance alone would hardly give such a score. A word that stands everywhere is seldom added, and no
more than before.

Where there is too little past, the documents stand in for it: how many hold the term, less those that just got it.
"""

from __future__ import annotations

from heapq import nlargest
from math import log
from typing import Literal

from msgspec.structs import replace

from levada.core.protocols import Trends
from levada.core.search_records import TermGrowth, Trend, TrendQuery

LEAST = 3
PAST_WINDOWS = 7
_LEAST_SCORE = 10.83  # one term in a thousand reaches it by chance (chi-squared, one degree of freedom)
_ENOUGH_PAST = 1_000  # changes in a language; or as many as in the window, if these are not too few
_TOO_FEW = 30


def trend_query(
    now: float, window: float, step: float, site: str | None = None, language: str | None = None
) -> TrendQuery:
    """The window up to now and the seven before it, in whole steps of the counts."""
    since = (now - window) // step * step
    return TrendQuery(since - PAST_WINDOWS * window, since, now + step, site, language, LEAST)


def trending(trends: Trends, query: TrendQuery, limit: int) -> list[Trend]:
    """The terms that grew most, the strongest first."""
    growth = trends.growth(query)
    totals = {each.language: each for each in growth if not each.term}
    # Documents are counted over all sites, so what was just added to them must be, too.
    everywhere = growth if query.site is None else trends.growth(replace(query, site=None))
    added = {(each.language, each.term): each.now for each in everywhere}
    scored = (
        _trend(each, totals[each.language], added.get((each.language, each.term), each.now), trends)
        for each in growth
        if each.term
    )
    grown = (trend for trend in scored if trend.score >= _LEAST_SCORE)
    return nlargest(limit, grown, key=lambda trend: trend.score)


def surprise(now: int, changes: int, past: int, past_changes: int) -> float:
    """Evidence of growth: twice the logarithm of the likelihood ratio; 0 if the share did not grow."""
    if not changes or not past_changes or now * past_changes <= past * changes:
        return 0.0
    together = (now + past) / (changes + past_changes)
    apart = _log_likelihood(now, changes, now / changes) + _log_likelihood(past, past_changes, past / past_changes)
    same = _log_likelihood(now, changes, together) + _log_likelihood(past, past_changes, together)
    return max(0.0, 2.0 * (apart - same))


def _log_likelihood(hits: int, trials: int, share: float) -> float:
    return (hits * log(share) if hits else 0.0) + ((trials - hits) * log(1.0 - share) if hits < trials else 0.0)


def _trend(each: TermGrowth, total: TermGrowth, added: int, trends: Trends) -> Trend:
    documents = trends.frequency(each.term, each.language)
    against: Literal["changes", "documents"] = "changes"
    past, of = each.past, total.past
    if of < min(_ENOUGH_PAST, max(_TOO_FEW, total.now)):
        against = "documents"
        past, of = max(0, documents - added), trends.frequency("", each.language)
    score = surprise(each.now, total.now, past, of)
    return Trend(each.term, each.language, score, each.now, total.now, past, of, against, each.sites, documents)
