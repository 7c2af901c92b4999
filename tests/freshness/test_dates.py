"""What one date says about how often a page changes: a little, with honest bounds."""

from __future__ import annotations

import pytest

from levada.core.records import Outcome, Signals
from levada.freshness.explain import RateEstimate
from tests.freshness.facts import DAY, HOUR, a_page, policy, visited

MINUTE = 60.0


@pytest.mark.parametrize("age", [90.0, 4 * MINUTE, 30 * MINUTE])
def test_one_visit_with_a_fresh_date_does_not_make_a_page_change_every_few_minutes(age: float) -> None:
    revisit = policy(per_hour=60)
    page = visited(revisit, a_page(), DAY, Outcome.FIRST, modified=DAY - age)
    rate = RateEstimate.of(revisit.estimates.calibrated(page))
    assert rate.median > DAY
    assert rate.low > HOUR
    assert rate.high > 30 * DAY  # as far as is known, it may never change
    assert rate.static > 0.1


@pytest.mark.parametrize("age", [5.0, 90.0, 20 * MINUTE])
def test_one_change_with_a_fresh_date_does_not_either(age: float) -> None:
    revisit = policy(per_hour=60)
    page = visited(revisit, a_page(), 0.0, Outcome.FIRST)
    said = Signals.DATED | Signals.DATE_MOVED
    page = visited(revisit, page, DAY, Outcome.CHANGED, said=said, similarity=0.8, modified=DAY - age)
    rate = RateEstimate.of(revisit.estimates.calibrated(page))
    assert rate.median > 2 * HOUR
    assert rate.low < rate.median < rate.high
    assert rate.high > DAY


def test_a_page_that_changed_before_every_visit_comes_to_be_known_as_a_lively_one() -> None:
    revisit = policy(per_hour=60)
    page = visited(revisit, a_page(), 0.0, Outcome.FIRST)
    for step in range(1, 9):
        said = Signals.DATED | Signals.DATE_MOVED
        at = step * HOUR
        page = visited(revisit, page, at, Outcome.CHANGED, said=said, similarity=0.8, modified=at - 8 * MINUTE)
    assert RateEstimate.of(revisit.estimates.calibrated(page)).median < HOUR


def test_new_pages_of_a_site_that_never_changes_one_are_believed_to_be_current() -> None:
    """A newspaper of the day: each page is young when it is found, and stays as it is."""
    revisit = policy(per_hour=600)
    for issue in range(6):
        for number in range(20):
            at = issue * 2 * HOUR + number
            visited(revisit, a_page(100 * issue + number), at + 600.0, Outcome.FIRST, modified=at)
    for number in range(20):
        page = visited(revisit, a_page(10_000 + number), 12 * HOUR, Outcome.FIRST, modified=12 * HOUR - 600.0)
        visited(revisit, page, 18 * HOUR, Outcome.UNCHANGED)
    share = revisit.estimates.share(DAY)
    assert share is not None
    assert share > 0.85
