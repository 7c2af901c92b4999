"""Activity: changes that come together, in what is said of pages and not in their plans."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.records import Outcome, PageRecord
from levada.freshness import LearnedRevisit, PageEstimates, Scale
from levada.freshness.activity import Activity
from levada.freshness.estimates import Evidence, row_of
from tests.freshness.facts import CEILING, DAY, FLOOR, HOUR, a_page, crawled, policy, visited

_chances = st.floats(0.0, 1.0)
_visits = st.lists(st.tuples(_chances, _chances, st.floats(1.0, 1e8), st.integers(0, 3000)), max_size=200)


@given(_visits)
def test_the_ratio_stays_between_a_quarter_and_four(visits: list[tuple[float, float, float, int]]) -> None:
    activity = Activity()
    assert activity.ratio == 1.0
    for visit in visits:
        activity.add(*visit)
        assert 0.25 <= activity.ratio <= 4.0


@given(_visits, _chances, st.floats(1.0, 1e6))
def test_a_change_never_lowers_the_ratio_below_what_no_change_gives(
    visits: list[tuple[float, float, float, int]], expected: float, elapsed: float
) -> None:
    found, missed = Activity(), Activity()
    for visit in visits:
        found.add(*visit)
        missed.add(*visit)
    found.add(expected, 1.0, elapsed, 100)
    missed.add(expected, 0.0, elapsed, 100)
    assert found.ratio >= missed.ratio


def test_as_many_changes_as_expected_leave_the_rates_as_they_are() -> None:
    activity, chance = Activity(), Random(3)
    for _ in range(20_000):
        activity.add(0.1, float(chance.random() < 0.1), HOUR, 2_000)
    assert activity.ratio == pytest.approx(1.0, abs=0.25)  # some 60 changes are counted


def a_quiet_month() -> tuple[LearnedRevisit, list[PageRecord]]:
    """Two hundred pages that change every twenty days or so, visited for two months."""
    revisit, chance = policy(per_hour=2), Random(5)
    pages = [visited(revisit, a_page(n, n % 10), 0.0, Outcome.FIRST) for n in range(200)]
    return revisit, crawled(revisit, pages, [1 / (20 * DAY)] * 200, chance, 60 * DAY)


def share(estimates: PageEstimates, now: float) -> float:
    found = estimates.share(now)
    assert found is not None
    return found


def a_burst(revisit: LearnedRevisit, pages: list[PageRecord]) -> list[PageRecord]:
    """All pages change on one day, and a fifth of them is visited after it."""
    return [visited(revisit, page, 61 * DAY, Outcome.CHANGED) for page in pages[:40]] + pages[40:]


def test_after_a_burst_of_changes_less_is_said_to_be_current() -> None:
    revisit, pages = a_quiet_month()
    estimates, before = revisit.estimates, share(revisit.estimates, 61 * DAY)
    a_burst(revisit, pages)
    assert estimates.activity.ratio > 1.5
    assert share(estimates, 61 * DAY) < before  # although a fifth of the pages were visited just now


def test_no_plan_depends_on_the_activity() -> None:
    revisit, pages = a_quiet_month()
    calm = visited(revisit, pages[0], 61 * DAY, Outcome.UNCHANGED)
    again, pages = a_quiet_month()
    for _ in range(100):
        again.estimates.activity.add(0.01, 1.0, DAY, 200)
    assert again.estimates.activity.ratio > 3.0
    assert visited(again, pages[0], 61 * DAY, Outcome.UNCHANGED).next_visit == calm.next_visit


def test_a_crawler_that_starts_again_knows_of_the_burst() -> None:
    revisit, pages = a_quiet_month()
    pages = a_burst(revisit, pages)
    again = PageEstimates(Scale.between(FLOOR, CEILING))
    again.learn(pages, 1)
    assert again.activity.ratio == pytest.approx(revisit.estimates.activity.ratio, rel=0.2)
    assert share(again, 61 * DAY) == pytest.approx(share(revisit.estimates, 61 * DAY), abs=0.02)


@given(st.lists(st.floats(-30.0, 0.0), min_size=16, max_size=16), st.booleans(), st.none() | _chances)
def test_what_was_expected_is_stored_with_the_page(rates: list[float], dated: bool, expected: float | None) -> None:
    evidence = Evidence(rates, [0.0] * 16 if dated else rates, expected)
    memory = evidence.packed([1.0, 2.0])
    read = Evidence.of(memory)
    assert row_of(memory, 2) == [1.0, 2.0]
    assert (read.cautious is read.plan) is not dated
    assert read.expected == (None if expected is None else pytest.approx(expected, abs=1e-3))
