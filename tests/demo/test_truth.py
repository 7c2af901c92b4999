"""Actual freshness, on pages made by hand and by property."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.demo.actual import first_visits, fresh_at, measure, round_robin
from levada.demo.world import ORIGIN, DemoWorld, Dynamics, Page

_HOUR = 3600.0


class HandMadeWorld(DemoWorld):
    """Two pages: one that changes when told, one that never does."""

    def __init__(self, changes: Sequence[float]) -> None:
        super().__init__(1, DemoWorld.build(pages=2).sites)
        self._given = [ORIGIN + at for at in changes]

    def change_times(self, page: Page, until: float) -> Sequence[float]:
        return self._given if page.number == 0 else ()


@cache
def the_world() -> DemoWorld:
    return DemoWorld.build(seed=1)


def _visits(world: DemoWorld, number: int, *times: float) -> list[tuple[str, float]]:
    return [(world.url(world.pages[number], 80), ORIGIN + at) for at in times]


def test_a_page_visited_right_after_each_change_is_always_fresh() -> None:
    world = HandMadeWorld([10, 20, 30])
    actual = measure(world, _visits(world, 0, 0, 10, 20, 30), ORIGIN, ORIGIN + 40, world.pages[:1])
    assert actual.freshness == pytest.approx(1.0)
    assert actual.fresh_at_end == 1.0
    assert (actual.changes, actual.caught, actual.fetches) == (3, 3, 3)
    assert actual.mean_age == 0.0


def test_a_page_never_visited_again_is_stale_from_its_first_change() -> None:
    world = HandMadeWorld([10, 20, 30])
    actual = measure(world, _visits(world, 0, 0), ORIGIN, ORIGIN + 40, world.pages[:1])
    assert actual.freshness == pytest.approx(0.25)
    assert actual.fresh_at_end == 0.0
    assert (actual.changes, actual.caught) == (3, 0)
    assert actual.mean_age == pytest.approx(30 * 30 / 2 / 40)


def test_a_late_visit_catches_only_the_last_of_two_changes() -> None:
    world = HandMadeWorld([10, 20])
    actual = measure(world, _visits(world, 0, 0, 25), ORIGIN, ORIGIN + 40, world.pages[:1])
    assert actual.caught == 1
    assert actual.freshness == pytest.approx((10 + 15) / 40)
    assert actual.mean_age == pytest.approx(15 * 15 / 2 / 40)


def test_a_page_without_a_copy_is_not_fresh() -> None:
    world = HandMadeWorld([])
    actual = measure(world, _visits(world, 1, 10), ORIGIN, ORIGIN + 40, world.pages)
    assert actual.freshness == pytest.approx(30 / 80)
    assert actual.fresh_at_end == 0.5


def test_a_copy_older_than_the_time_measured_counts_from_its_start() -> None:
    world = HandMadeWorld([10, 60])
    actual = measure(world, _visits(world, 0, 0, 15), ORIGIN + 20, ORIGIN + 100, world.pages[:1])
    assert actual.freshness == pytest.approx(40 / 80)
    assert (actual.fetches, actual.changes, actual.caught) == (0, 1, 0)
    assert actual.mean_age == pytest.approx(40 * 40 / 2 / 80)


def test_addresses_outside_the_world_do_not_count() -> None:
    world = HandMadeWorld([])
    assert measure(world, [("http://hostile.localhost/", ORIGIN)], ORIGIN, ORIGIN + 1).fetches == 0


def test_no_time_is_no_measure() -> None:
    with pytest.raises(ValueError, match="longer than nothing"):
        measure(the_world(), [], ORIGIN, ORIGIN)


_MOMENTS = st.lists(st.tuples(st.integers(0, 40), st.floats(0, 12 * _HOUR)), max_size=60)


@settings(deadline=None)
@given(_MOMENTS, _MOMENTS)
def test_more_visits_never_make_it_less_fresh(some: list[tuple[int, float]], more: list[tuple[int, float]]) -> None:
    world = the_world()
    pages = [page for page in world.pages if page.dynamics is not Dynamics.STATIC][:41]
    few = [(world.url(pages[i]), ORIGIN + at) for i, at in some]
    many = few + [(world.url(pages[i]), ORIGIN + at) for i, at in more]
    t1 = ORIGIN + 12 * _HOUR
    less, better = (measure(world, visits, ORIGIN, t1, pages) for visits in (few, many))
    assert better.freshness >= less.freshness - 1e-9
    for t in (ORIGIN + _HOUR, ORIGIN + 7 * _HOUR, t1):
        assert fresh_at(world, many, t, pages) >= fresh_at(world, few, t, pages)
    assert better.fresh_at_end == fresh_at(world, many, t1, pages)
    assert better.caught <= better.changes


def test_round_robin_is_the_measure_of_visits_in_turn() -> None:
    world = the_world()
    t1 = ORIGIN + 12 * _HOUR
    fetches = 3 * len(world.pages)
    step = 12 * _HOUR / (fetches + 1)
    by_hand = [(world.url(world.pages[i % len(world.pages)]), ORIGIN + step * (i + 1)) for i in range(fetches)]
    assert round_robin(world, ORIGIN, t1, fetches) == measure(world, by_hand, ORIGIN, t1)


def test_round_robin_from_the_same_first_pass_spends_equally_many_fetches() -> None:
    world = the_world()
    t1 = ORIGIN + 12 * _HOUR
    crawl = [(world.url(page), ORIGIN + 60 + page.number) for page in world.pages]
    again = [(world.url(page), ORIGIN + 9000 + page.number) for page in world.pages]
    assert sorted(first_visits(again + crawl)) == sorted(crawl)
    other = round_robin(world, ORIGIN, t1, 2 * len(world.pages), first=first_visits(crawl + again))
    assert other.fetches == 2 * len(world.pages)
    assert other.freshness > measure(world, crawl, ORIGIN, t1).freshness
    assert other.freshness > round_robin(world, ORIGIN, t1, 2 * len(world.pages)).freshness


def test_round_robin_without_fetches_or_pages_is_no_crash() -> None:
    assert round_robin(the_world(), ORIGIN, ORIGIN + 10, 0).freshness == 0.0
    assert round_robin(the_world(), ORIGIN, ORIGIN + 10, 5, []).freshness == 0.0
