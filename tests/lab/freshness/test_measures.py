from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.lab.freshness.measures import Hour, hourly, measure, met_changes
from levada.lab.freshness.worlds import LabWorld, Visits
from tests.lab.freshness.small import in_turn, visits_of, world_of

moments = st.integers(1, 99).map(float)
pages = st.lists(st.lists(moments, max_size=6), min_size=1, max_size=4)


@st.composite
def runs(draw: st.DrawFn) -> tuple[LabWorld, Visits]:
    changes = draw(pages)
    lives = [draw(st.tuples(st.integers(0, 50), st.integers(50, 120))) for _ in changes]
    world = world_of(*changes, begins=[float(b) for b, _ in lives], ends=[float(e) for _, e in lives])
    count = len(changes)
    visits = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, 110).map(float)), max_size=20))
    return world, visits_of(*visits)


def by_hand(world: LabWorld, visits: Visits) -> tuple[float, float, list[float]]:
    """Seconds current, age summed over changing pages, delays of caught changes: page by page, moment by moment."""
    fresh, age, delays = 0.0, 0.0, list[float]()
    for page in range(world.pages):
        changes = list(world.changes_of(page))
        begin, end = world.begins[page], world.ends[page]
        seen = [at for who, at in zip(visits.page, visits.at, strict=True) if who == page and begin <= at <= end]
        edges = sorted({begin, end, *changes, *seen})
        for start, stop in pairwise(edges):
            last = max((at for at in seen if at <= start), default=None)
            missed = begin if last is None else min((at for at in changes if at > last), default=math.inf)
            if missed > start:
                fresh += stop - start
            elif changes:
                age += ((stop - missed) ** 2 - (start - missed) ** 2) / 2
        for change, following in pairwise([*changes, math.inf]):
            delays += [at - change for at in sorted(seen) if change <= at < following][:1]
    return fresh, age, delays


@given(runs())
@settings(deadline=None, max_examples=200)
def test_the_measures_are_what_a_reckoning_by_hand_gives(run: tuple[LabWorld, Visits]) -> None:
    world, visits = run
    measured = measure(world, visits)
    fresh, age, delays = by_hand(world, visits)
    lives = world.ends - world.begins
    changing = sum(life for page, life in enumerate(lives) if len(world.changes_of(page)))
    assert measured.freshness == pytest.approx(fresh / lives.sum() if lives.sum() else 1.0)
    assert measured.age == pytest.approx(age / changing if changing else 0.0)
    assert measured.caught == pytest.approx(len(delays) / len(world.times) if len(world.times) else 1.0)
    assert measured.fetches == len(visits)
    told = [measured.delay_p50, measured.delay_p90]
    assert told == (pytest.approx(list(np.quantile(delays, [0.5, 0.9]))) if delays else [None, None])


@given(runs())
@settings(deadline=None, max_examples=100)
def test_every_measure_is_finite_and_every_share_a_share(run: tuple[LabWorld, Visits]) -> None:
    measured = measure(*run)
    assert 0.0 <= measured.freshness <= 1.0
    assert 0.0 <= measured.caught <= 1.0
    assert 0.0 <= measured.changes_per_fetch <= 1.0
    assert math.isfinite(measured.age)
    assert measured.age >= 0.0
    assert (measured.delay_p50 or 0.0) <= (measured.delay_p90 or 0.0)


@given(runs(), st.integers(0, 3), moments)
@settings(deadline=None, max_examples=100)
def test_one_more_visit_never_makes_a_collection_staler(run: tuple[LabWorld, Visits], page: int, at: float) -> None:
    world, visits = run
    more = visits_of(*zip(visits.page, visits.at, strict=True), (page % world.pages, at))
    assert measure(world, more).freshness >= measure(world, visits).freshness - 1e-12
    assert measure(world, more).age <= measure(world, visits).age + 1e-9


def test_a_copy_is_current_until_the_first_change_after_its_visit() -> None:
    measured = measure(world_of([40.0, 50.0, 60.0]), visits_of((0, 0.0), (0, 70.0)))
    assert measured.freshness == pytest.approx(0.7)
    assert measured.age == pytest.approx(30.0**2 / 2 / 100)
    assert measured.caught == pytest.approx(1 / 3)
    assert measured.delay_p50 == 10.0


def test_a_visit_at_the_moment_of_a_change_sees_it() -> None:
    measured = measure(world_of([40.0]), visits_of((0, 0.0), (0, 40.0)))
    assert (measured.freshness, measured.caught, measured.delay_p50) == (1.0, 1.0, 0.0)


def test_after_its_end_a_page_counts_for_nothing() -> None:
    measured = measure(world_of([10.0, 80.0], ends=[50.0]), visits_of((0, 0.0), (0, 20.0), (0, 90.0)))
    assert measured.freshness == pytest.approx(40 / 50)
    assert measured.caught == 1.0
    assert measured.fetches == 3


def test_a_web_that_stands_still_is_fresh_and_nothing_is_missed() -> None:
    measured = measure(world_of([], []), in_turn(world_of([], []), 3))
    assert (measured.freshness, measured.age, measured.caught, measured.delay_p50) == (1.0, 0.0, 1.0, None)


def test_a_page_that_is_never_visited_has_no_copy() -> None:
    assert measure(world_of([], []), visits_of((0, 0.0))).freshness == 0.5


def test_a_first_visit_meets_no_change() -> None:
    world = world_of([5.0, 20.0])
    assert list(met_changes(world, visits_of((0, 10.0), (0, 15.0), (0, 25.0)))) == [False, False, True]


def test_the_hourly_figures_are_in_the_words_of_the_paper() -> None:
    world = world_of([4000.0], [], [], [], horizon=7200.0)
    visits = visits_of((0, 0.0), (1, 0.0), (0, 5000.0), (0, 6000.0), (1, 6000.0))
    first, second, third = hourly(world, visits, 0.0, 3)
    assert first == Hour(2, 2, 0, 0.0, 50.0, 3.0)
    assert second == Hour(2, 3, 1, 25.0, 50.0, (4 + 1 + 2) / 2)
    assert third == Hour(0, 0, 0, 0.0, 0.0, None)
