"""Pages and visits for tests of the policies."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from random import Random

from levada.core.records import Outcome, PageRecord
from levada.freshness import LearnedRevisit, PageEstimates, Scale
from levada.testing.policy import a_page, visited

__all__ = ["CEILING", "DAY", "FLOOR", "HOUR", "a_page", "crawled", "policy", "visited"]

HOUR, DAY = 3600.0, 86_400.0
FLOOR, CEILING = 300.0, 30 * DAY


def policy(size: int = 2_000, **budget: float) -> LearnedRevisit:
    return LearnedRevisit(PageEstimates(Scale.between(FLOOR, CEILING), size=size), **budget)


def changes_within(chance: Random, rate: float, seconds: float) -> bool:
    return chance.random() < -math.expm1(-rate * seconds)


def crawled(
    revisit: LearnedRevisit, pages: Sequence[PageRecord], rates: Sequence[float], chance: Random, until: float
) -> list[PageRecord]:
    """The pages after all planned visits up to a time, in their order; each changes at its rate."""
    known = list(pages)
    due = [(page.next_visit or 0.0, n) for n, page in enumerate(known)]
    heapq.heapify(due)
    while due and due[0][0] < until:
        at, n = due[0]
        changed = changes_within(chance, rates[n], known[n].interval or 0.0)
        known[n] = visited(revisit, known[n], at, Outcome.CHANGED if changed else Outcome.UNCHANGED)
        heapq.heapreplace(due, (known[n].next_visit or 0.0, n))
    return known
