"""Pages and visits for tests of the policies."""

from __future__ import annotations

import math
from random import Random

from msgspec.structs import replace

from levada.freshness import LearnedRevisit, PageBeliefs, RuleRevisit, Scale
from levada.records import How, Outcome, PageKind, PageRecord, PageState, Said, Visit

__all__ = ["CEILING", "DAY", "FLOOR", "HOUR", "a_page", "policy", "visited"]

HOUR, DAY = 3600.0, 86_400.0
FLOOR, CEILING = 300.0, 30 * DAY


def a_page(number: int = 1, site: int = 1, **facts: object) -> PageRecord:
    url = f"http://s{site}.test/{number}"
    page = PageRecord(
        site << 24 | number, url, f"s{site}.test", PageKind.PAGE, PageState.NEW, How.LINK, 1, 0, found_at=0.0
    )
    return replace(page, **facts)


def policy(size: int = 2_000, **budget: float) -> LearnedRevisit:
    return LearnedRevisit(PageBeliefs(Scale.between(FLOOR, CEILING), size=size), **budget)


def visited(
    revisit: LearnedRevisit | RuleRevisit,
    page: PageRecord,
    at: float,
    outcome: Outcome,
    *,
    said: Said = Said.NOTHING,
    similarity: float = 1.0,
    modified: float | None = None,
) -> PageRecord:
    """The page after this visit, as a store would hold it."""
    visit = Visit(at, outcome, similarity, said)
    plan = revisit.plan(page, visit, modified)
    return replace(
        page,
        state=PageState.LIVE,
        visits=page.visits + 1,
        history=(*page.history, visit)[-10:],
        interval=plan.interval,
        next_visit=at + plan.interval,
        memory=plan.memory,
        told=Said.NOTHING,
    )


def changes_within(chance: Random, rate: float, seconds: float) -> bool:
    return chance.random() < -math.expm1(-rate * seconds)
