from __future__ import annotations

import numpy as np
import pytest

from levada.core.errors import UsageError
from levada.lab.freshness.histories import fitted_world, ota_world
from levada.lab.freshness.worlds import (
    BURSTY_BANDS,
    CLASSES,
    DAILY_BANDS,
    DAY,
    HOUR,
    PERIODIC_BANDS,
    POISSON_BANDS,
    SYNTHETIC_WORLDS,
    LabWorld,
    build_world,
    class_counts,
    make_world,
    populate,
    share_out,
)

STATIONARY = {
    "poisson-7d": POISSON_BANDS,
    "periodic-7d": PERIODIC_BANDS,
    "daily-7d": DAILY_BANDS,
    "bursty-7d": BURSTY_BANDS,
}


def hourly_hits(world: LabWorld) -> np.ndarray:
    """Of each page, the share of hourly visits that meet a change."""
    page = np.repeat(np.arange(world.pages), np.diff(world.offsets))
    hour = (world.times // HOUR).astype(np.int64)
    hours = int(world.horizon // HOUR)
    inside = hour < hours
    hits = np.unique(page[inside] * hours + hour[inside])
    return np.bincount(hits // hours, minlength=world.pages) / hours


def check(world: LabWorld) -> None:
    assert world.offsets[0] == 0
    assert world.offsets[-1] == len(world.times)
    assert len(world.offsets) == world.pages + 1 == len(world.sites) + 1 == len(world.rates) + 1
    page = np.repeat(np.arange(world.pages), np.diff(world.offsets))
    assert np.all((world.times > world.begins[page]) & (world.times <= world.ends[page]))
    assert np.all((np.diff(world.times) > 0) | (np.diff(page) > 0))
    assert np.all(np.isfinite(world.rates))
    assert world.rates.min() >= 0
    assert np.all((world.begins >= 0) & (world.begins < world.ends) & (world.ends <= world.horizon))


@pytest.mark.parametrize("pages", [1, 37, 1046])
@pytest.mark.parametrize("name", SYNTHETIC_WORLDS)
def test_a_made_world_is_whole(name: str, pages: int) -> None:
    world = make_world(name, 3, pages)
    assert world.pages == pages
    check(world)


@pytest.mark.parametrize("world", [fitted_world(1), ota_world()], ids=lambda world: world.name)
def test_a_fitted_and_a_replayed_world_are_whole(world: LabWorld) -> None:
    check(world)


@pytest.mark.parametrize("name", SYNTHETIC_WORLDS)
def test_the_same_seed_gives_the_same_world_and_another_seed_another(name: str) -> None:
    one, same, other = make_world(name, 1), make_world(name, 1), make_world(name, 2)
    assert np.array_equal(one.times, same.times)
    assert np.array_equal(one.rates, same.rates)
    assert not np.array_equal(one.times[:100], other.times[:100])


@pytest.mark.parametrize("name", SYNTHETIC_WORLDS)
def test_as_much_changes_as_the_true_rates_say(name: str) -> None:
    worlds = [make_world(name, seed) for seed in range(4)]
    changed = sum(len(world.times) for world in worlds)
    expected = sum(world.rates.mean(axis=1).sum() * world.horizon for world in worlds)
    assert changed == pytest.approx(expected, rel=0.03)


def test_the_population_is_that_of_the_paper() -> None:
    people = populate(np.random.default_rng(1), POISSON_BANDS, 1046)
    counts = np.bincount(people.classes)
    assert dict(zip(CLASSES, counts, strict=True)) == {"static": 745, "low": 60, "medium": 173, "high": 68}
    assert len(np.unique(people.sites)) == 23
    assert sum(sum(each) for each in class_counts().values()) == 1046


@pytest.mark.parametrize("name", STATIONARY)
def test_hourly_visits_would_put_a_page_into_its_class(name: str) -> None:
    worlds = [make_world(name, seed) for seed in range(3)]
    hits = np.concatenate([hourly_hits(world) for world in worlds])
    rate = np.concatenate([world.rates[:, 0] for world in worlds])
    bands = STATIONARY[name]
    per_change = rate.max() / bands.most
    quarter, half = bands.quarter * per_change, bands.half * per_change
    medium = (rate > quarter * 1.05) & (rate < half * 0.95)
    assert 0.25 < hits[medium].mean() < 0.5
    assert np.mean((hits[medium] > 0.17) & (hits[medium] < 0.58)) > 0.9
    assert hits[rate > half * 1.1].mean() > 0.5
    assert hits[(rate > 0) & (rate < quarter * 0.9)].max() < 0.35


def test_pages_of_one_site_resemble_each_other() -> None:
    world = make_world("poisson-7d", 1)
    lively = (world.rates[:, 0] > 1 / DAY).astype(float)
    shares = np.array([lively[world.sites == site].mean() for site in range(23)])
    by_chance = lively.mean() * (1 - lively.mean()) / 45
    assert shares.var() > 3 * by_chance


def test_a_daily_world_sleeps_at_night() -> None:
    world = make_world("daily-7d", 1)
    page = np.repeat(np.arange(world.pages), np.diff(world.offsets))
    site = world.sites[page]
    busiest = np.bincount(site).argmax()
    hours = np.bincount((world.times[site == busiest] % DAY // HOUR).astype(int), minlength=24)
    assert np.sort(hours)[:6].sum() < 0.1 * np.sort(hours)[-6:].sum()


def test_bursts_are_followed_by_rest_and_a_timetable_is_kept() -> None:
    def unevenness(name: str) -> float:
        """Deviation of the time between changes over its mean, of pages with many changes but no constant ones."""
        world = make_world(name, 1)
        gaps = [np.diff(world.changes_of(page)) for page in range(world.pages)]
        return float(np.median([gap.std() / gap.mean() for gap in gaps if 20 < len(gap) < 200]))

    assert unevenness("periodic-7d") < 0.15
    assert 0.85 < unevenness("poisson-7d") < 1.15
    assert unevenness("bursty-7d") > 1.5


def test_in_a_drifting_world_pages_speed_up_slow_down_die_and_wake() -> None:
    rates = make_world("drifting-7d", 1).rates
    before, after = rates[:, :-1], rates[:, 1:]
    assert rates.shape == (1046, 7)
    assert np.any(after > 5 * np.maximum(before, 1 / DAY))
    assert np.any((after < before / 5) & (after > 0))
    assert np.any((before > 1 / DAY) & (after == 0))
    assert np.any((before == 0) & (after > 0))
    assert np.mean(after == before) > 0.8


def test_most_pages_of_the_slow_world_change_weekly_to_monthly() -> None:
    rates = make_world("slow-7d", 1).rates[:, 0]
    assert np.mean((rates >= 1 / (30.01 * DAY)) & (rates <= 1 / (6.99 * DAY))) > 0.75


def test_an_unknown_world_is_refused_with_the_names_of_the_others() -> None:
    with pytest.raises(UsageError, match="no world is called 'mars'; there are poisson-12h"):
        make_world("mars", 1)
    with pytest.raises(UsageError, match="at least one page"):
        make_world("poisson-7d", 1, 0)


def test_what_lies_outside_a_life_and_what_is_said_twice_is_dropped() -> None:
    page, at = np.array([0, 0, 0, 1, 1, 1]), np.array([5.0, 0.0, 5.0, 3.0, 10.0, 11.0])
    world = build_world("made", 10.0, (page, at), np.array([0, 0]), begins=np.array([0.0, 3.0]))
    assert list(world.changes_of(0)) == [5.0]
    assert list(world.changes_of(1)) == [10.0]
    assert world.rates[:, 0] == pytest.approx([1 / 10, 1 / 7])


def test_shares_add_up() -> None:
    assert share_out(10, [1, 1, 1]) == [4, 3, 3]
    assert share_out(0, [1, 2]) == [0, 0]
