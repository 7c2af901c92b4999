"""The paper's rule, against the paper's own trace and its laws."""

from __future__ import annotations

import csv
import math
from importlib.resources import files
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.freshness import EmaRevisit, FixedRevisit
from levada.ports import RevisitPolicy
from levada.records import Outcome, Visit

MINUTE = 60.0
MISPRINTED = "45.15"  # of 46.15 = 60 / 1.3

outcomes = st.sampled_from([Outcome.UNCHANGED, Outcome.CHANGED])
histories = st.lists(outcomes, max_size=10).map(lambda met: [Visit(0.0, outcome) for outcome in met])
intervals = st.floats(1.0, 1e8)


def trace() -> list[tuple[list[Outcome], str]]:
    text = (files("levada.freshness") / "data" / "freshness_url1041.csv").read_text()
    return [
        ([Outcome(int(code)) for code in row["last_ten_oldest_first"].split(",")], row["interval_minutes"])
        for row in csv.DictReader(text.splitlines())
    ]


def test_every_interval_of_the_papers_trace_is_met_within_print_rounding() -> None:
    rule = EmaRevisit(first=60 * MINUTE)
    interval = 60 * MINUTE
    before = [Visit(0.0, Outcome.UNCHANGED)] * 10
    rows = trace()
    assert len(rows) == 12
    for last_ten, printed in rows:
        interval = rule.next_interval(interval, before, last_ten[-1])
        wanted = 46.15 if printed == MISPRINTED else float(printed)
        assert abs(interval / MINUTE - wanted) <= 0.011, (printed, interval / MINUTE)
        before = [Visit(0.0, outcome) for outcome in last_ten]


def test_the_trace_holds_each_rows_outcomes_after_the_one_before() -> None:
    rows = [last_ten for last_ten, _ in trace()]
    assert all(later[:-1] == sooner[1:] for sooner, later in pairwise(rows))


def test_the_first_visit_is_followed_by_the_first_interval() -> None:
    assert EmaRevisit(first=60.0).next_interval(None, [], Outcome.FIRST) == 60.0
    assert EmaRevisit(first=60.0).next_interval(7.0, [], Outcome.FIRST) == 60.0
    assert EmaRevisit(first=60.0).next_interval(None, [], Outcome.CHANGED) == 60.0


@given(intervals, histories, outcomes)
def test_an_interval_is_finite_and_positive(interval: float, history: list[Visit], outcome: Outcome) -> None:
    after = EmaRevisit().next_interval(interval, history, outcome)
    assert math.isfinite(after)
    assert after > 0


@given(intervals, histories)
def test_a_change_never_means_a_later_visit_than_none(interval: float, history: list[Visit]) -> None:
    rule = EmaRevisit()
    changed = rule.next_interval(interval, history, Outcome.CHANGED)
    assert changed < interval < rule.next_interval(interval, history, Outcome.UNCHANGED)


@given(intervals, histories, st.integers(0, 9))
def test_more_changes_before_a_change_never_mean_a_later_visit(
    interval: float, history: list[Visit], place: int
) -> None:
    more = [Visit(0.0, Outcome.CHANGED) if n == place else visit for n, visit in enumerate(history)]
    rule = EmaRevisit()
    assert rule.next_interval(interval, more, Outcome.CHANGED) <= rule.next_interval(
        interval, history, Outcome.CHANGED
    )


@given(st.lists(outcomes, max_size=200), st.floats(60.0, 600.0), st.floats(7200.0, 1e6))
def test_floor_and_ceiling_hold_whatever_happens(met: list[Outcome], floor: float, ceiling: float) -> None:
    rule = EmaRevisit(3600.0, floor, ceiling)
    interval, history = 3600.0, list[Visit]()
    for outcome in met:
        interval = rule.next_interval(interval, history, outcome)
        history = [*history, Visit(0.0, outcome)][-10:]
        assert floor <= interval <= ceiling


@pytest.mark.parametrize("outcome", [Outcome.UNCHANGED, Outcome.CHANGED])
def test_a_rule_without_bounds_stays_finite_and_positive(outcome: Outcome) -> None:
    rule, interval = EmaRevisit(), 3600.0
    for _ in range(10_000):
        interval = rule.next_interval(interval, [], outcome)
    assert math.isfinite(interval)
    assert interval > 0


def test_only_the_latest_ten_visits_count() -> None:
    old = [Visit(0.0, Outcome.CHANGED)] * 50
    recent = [Visit(0.0, Outcome.UNCHANGED)] * 10
    rule = EmaRevisit()
    assert rule.next_interval(100.0, old + recent, Outcome.UNCHANGED) == pytest.approx(120.0)


@pytest.mark.parametrize(
    "bounds", [(60.0, 61.0, 100.0), (60.0, 10.0, 59.0), (60.0, -1.0, 100.0), (math.nan, 0.0, 1.0)]
)
def test_bounds_that_make_no_sense_are_refused(bounds: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="floor <= first <= ceiling"):
        EmaRevisit(*bounds)


@given(intervals | st.none(), histories, outcomes)
def test_round_robin_comes_back_after_the_same_time(
    interval: float | None, history: list[Visit], outcome: Outcome
) -> None:
    policy: RevisitPolicy = FixedRevisit(7.0)
    assert policy.next_interval(interval, history, outcome) == 7.0


@pytest.mark.parametrize("every", [0.0, -1.0, math.nan])
def test_round_robin_needs_an_interval(every: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        FixedRevisit(every)
