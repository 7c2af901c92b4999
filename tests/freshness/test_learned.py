"""The learned policy: what holds for every plan, and what it learns."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.records import Outcome, PageRecord, Signals
from levada.freshness import LearnedRevisit, PageEstimates, Scale
from levada.freshness.estimates import EAGER, price_for
from tests.freshness.facts import CEILING, DAY, FLOOR, HOUR, a_page, changes_within, policy, visited

OUTCOMES = st.sampled_from([Outcome.UNCHANGED, Outcome.CHANGED])
TIMES = st.floats(-1e12, 1e12, allow_nan=False)
SAID = st.integers(0, 63).map(Signals)
MODIFIED = st.none() | st.floats(-1e15, 1e15)


@given(st.lists(st.tuples(OUTCOMES, TIMES, SAID, MODIFIED), max_size=20))
def test_every_plan_lies_between_floor_and_ceiling_whatever_the_clock_and_the_server_say(
    visits: list[tuple[Outcome, float, Signals, float | None]],
) -> None:
    revisit = policy(per_hour=60)
    page = visited(revisit, a_page(), 0.0, Outcome.FIRST)
    for outcome, at, said, modified in visits:
        page = visited(revisit, page, at, outcome, said=said, modified=modified)
        assert page.interval is not None
        assert FLOOR <= page.interval <= CEILING
        expected = revisit.visit_after_hint(page, said)
        assert expected is None or math.isfinite(expected)
    share = revisit.estimates.share(1e13)
    assert share is not None
    assert 0.0 <= share <= 1.0


@given(st.binary(max_size=100), OUTCOMES)
def test_a_memory_that_is_no_memory_is_as_good_as_none(memory: bytes, outcome: Outcome) -> None:
    revisit = policy(per_hour=60)
    page = visited(revisit, a_page(memory=memory, history=a_page().history), 5 * HOUR, outcome)
    assert page.interval is not None
    assert FLOOR <= page.interval <= CEILING


def a_collection(revisit: LearnedRevisit, rates: Sequence[float], seed: int, rounds: int = 6) -> list[PageRecord]:
    """Pages that change at these rates, each visited so often, when planned."""
    chance = Random(seed)
    pages = [visited(revisit, a_page(n, n % 5), float(n), Outcome.FIRST) for n in range(len(rates))]
    for _ in range(rounds):
        for n, page in enumerate(pages):
            assert page.interval is not None
            assert page.next_visit is not None
            changed = changes_within(chance, rates[n], page.interval)
            pages[n] = visited(revisit, page, page.next_visit, Outcome.CHANGED if changed else Outcome.UNCHANGED)
    return pages


def test_a_page_that_changes_is_visited_more_often_than_one_that_does_not() -> None:
    revisit = policy(per_hour=50)
    rates = [1 / (3 * HOUR) if n % 4 == 0 else 0.0 for n in range(200)]
    pages = a_collection(revisit, rates, seed=1)
    lively = [page.interval or 0.0 for n, page in enumerate(pages) if n % 4 == 0]
    still = [page.interval or 0.0 for n, page in enumerate(pages) if n % 4]
    assert sum(lively) / len(lively) < sum(still) / len(still) / 3


@given(st.integers(0, 5), st.floats(10, 2_000), st.floats(1.01, 20))
@settings(max_examples=20)
def test_a_larger_budget_never_means_a_later_visit(seed: int, budget: float, more: float) -> None:
    def intervals(per_hour: float) -> list[float]:
        revisit = policy(per_hour=per_hour)
        chance = Random(seed)
        pages = []
        for n in range(30):
            page = visited(revisit, a_page(n, n % 3), float(n), Outcome.FIRST)
            for step in range(3):
                outcome = Outcome.CHANGED if chance.random() < n / 30 else Outcome.UNCHANGED
                page = visited(revisit, page, (step + 1) * HOUR, outcome)
            pages.append(page)
        return [revisit.plan(page, page.history[-1]).interval for page in pages]

    assert all(
        sooner <= later * 1.001 for sooner, later in zip(intervals(budget * more), intervals(budget), strict=True)
    )


def test_the_pages_together_ask_for_what_the_budget_allows() -> None:
    revisit = policy(per_hour=100)
    a_collection(revisit, [10 ** -(3 + n % 4) for n in range(300)], seed=2, rounds=8)
    price = revisit.price()
    estimates = revisit.estimates
    at_price = price_for(estimates.sums, estimates.kinds, estimates.scale.prices, EAGER * revisit.visits_per_second)
    assert price == pytest.approx(at_price, rel=0.05)
    assert revisit.visits_per_second == pytest.approx(100 / 3600, rel=0.05)


def test_a_site_that_may_be_asked_less_has_a_price_of_its_own_and_leaves_its_visits_to_the_others() -> None:
    rates = [1 / (2 * HOUR)] * 100
    free, bound = policy(per_hour=100), policy(per_hour=100)
    bound.limit_site("s1.test", 1 / HOUR)
    a_collection(free, rates, seed=3)
    pages = a_collection(bound, rates, seed=3)
    assert bound.price_at("s1.test") > 2 * bound.price_at("s2.test")
    assert bound.price_at("s2.test") < free.price_at("s2.test")
    asked = sum(1 / (page.interval or 1) for page in pages if page.site == "s1.test")
    assert asked <= 1.3 * EAGER / HOUR


def test_an_important_page_is_visited_sooner() -> None:
    estimates = PageEstimates(Scale.between(FLOOR, CEILING), lambda url: 10.0 if url.endswith("/7") else 1.0)
    revisit = LearnedRevisit(estimates, per_hour=20)
    pages = a_collection(revisit, [1 / (5 * HOUR)] * 50, seed=4, rounds=1)
    plans = [revisit.plan(page, page.history[-1]).interval for page in pages]
    assert plans[7] < 0.6 * sorted(plans)[25]


def test_without_a_budget_each_page_has_so_many_visits_a_day_on_average() -> None:
    revisit = policy(per_page_per_day=6)
    for n in range(100):
        visited(revisit, a_page(n), float(n), Outcome.FIRST)
    assert revisit.visits_per_second == pytest.approx(600 / DAY)


def test_no_page_is_starved_and_nearly_all_of_the_budget_is_spent() -> None:
    """An hour by hour story in which only what is due is visited, at most so many an hour."""
    chance = Random(5)
    revisit = LearnedRevisit(PageEstimates(Scale.between(FLOOR, 3 * DAY)), per_hour=60)
    rates = [10 ** -chance.uniform(3, 7) for _ in range(300)]
    pages = [visited(revisit, a_page(n, n % 7), 0.0, Outcome.FIRST) for n in range(300)]
    due = [(page.next_visit or 0.0, n) for n, page in enumerate(pages)]
    heapq.heapify(due)
    now, spent, longest = 0.0, 0, 0.0
    while now < 14 * DAY:
        now = max(now + 60.0, due[0][0])
        _, n = heapq.heappop(due)
        elapsed = now - pages[n].history[-1].at
        longest = max(longest, elapsed)
        changed = changes_within(chance, rates[n], elapsed)
        pages[n] = visited(revisit, pages[n], now, Outcome.CHANGED if changed else Outcome.UNCHANGED)
        assert (pages[n].next_visit or 0.0) > now
        heapq.heappush(due, (pages[n].next_visit or 0.0, n))
        spent += 1
    assert spent > 0.95 * 14 * 24 * 60
    assert longest <= 3 * DAY + HOUR


def test_the_same_visits_make_the_same_plans() -> None:
    def plans() -> list[float | None]:
        return [page.interval for page in a_collection(policy(per_hour=30), [1e-4] * 40, seed=6)]

    assert plans() == plans()
