"""The estimated share of current pages beside the actual one; each test prints its curve (pytest -s)."""

from __future__ import annotations

from random import Random
from statistics import fmean

import numpy as np
import pytest

from levada.demo.gazette import EVERY, FIRST
from levada.demo.world import DemoWorld, ValidatorKind
from levada.freshness import LearnedRevisit, PageEstimates, Scale
from levada.lab.freshness.calibration import CalibrationPoint, Document, calibrate, curve
from levada.lab.freshness.histories import ota_world

SPEED, MINUTE, DAY = 500.0, 60.0, 86_400.0
SEEDS = [31, 32, 33, 34, 35]
POINTS = 2.0  # how far the estimate may be off, in percentage points


def a_policy(**budget: float) -> LearnedRevisit:
    return LearnedRevisit(PageEstimates(Scale.between(60.0, 30 * DAY)), **budget)


def a_demo(seed: int, minutes: float, pages: int, per_issue: int) -> list[Document]:
    """The bundled web from eight in the morning on, and a gazette whose issues never change once they are out."""
    world, chance = DemoWorld.build(seed, pages), Random(seed)
    start = world.origin + 8 * 3600.0
    end = start + minutes * MINUTE * SPEED
    found = []
    for page in world.pages:
        dated = page.site.traits.validators in (ValidatorKind.BOTH, ValidatorKind.MODIFIED)
        changes = [at - start for at in world.changes_between(page, world.origin - 1.0, end)]
        created = world.changed_at(page, 1) - start if dated else None
        found.append(Document(page.path, page.site.host, chance.uniform(0.0, 3000.0), changes, created=created))
    for issue in np.arange(FIRST, end - start, EVERY).tolist():
        found += [
            Document(f"/{issue}/{n}", f"{n % 16}.gazette", issue + chance.uniform(60.0, 1800.0), (), created=issue)
            for n in range(per_issue)
        ]
    return found


def worst(points: list[CalibrationPoint]) -> float:
    return max(abs(point.gap) for point in points)


def a_crawl_of_ten_minutes(seed: int, per_second: float) -> list[CalibrationPoint]:
    """A point for each minute of a demo with so many fetches per second of the machine's time."""
    moments = [minute * MINUTE * SPEED for minute in range(1, 11)]
    documents = a_demo(seed, 10, pages=250, per_issue=30)
    points = calibrate(documents, a_policy(per_page_per_day=24.0), SPEED / per_second, moments)
    print(f"\nseed {seed}, {per_second:g} fetches a second\n{curve(points, MINUTE * SPEED)}")
    assert len(points) == 10
    return points


@pytest.mark.parametrize("seed", SEEDS)
def test_a_demo_of_ten_minutes_is_right_within_two_points_from_the_fifth_minute_on(seed: int) -> None:
    assert worst(a_crawl_of_ten_minutes(seed, 16.0)[4:]) <= POINTS


@pytest.mark.parametrize("seed", SEEDS)
def test_so_it_is_where_most_pages_can_be_visited_only_once_or_twice(seed: int) -> None:
    points = a_crawl_of_ten_minutes(seed, 5.0)
    assert points[-1].visits < 2 * points[-1].pages
    assert worst(points[4:]) <= POINTS


def real_histories(per_year: int) -> list[CalibrationPoint]:
    """Terms of service over a year, each visited so often on average: looked at ten times in each twelfth of it."""
    world = ota_world()
    documents = [
        Document(f"/{n}", f"s{world.sites[n]}", begins, world.changes_of(n).tolist(), ends)
        for n, (begins, ends) in enumerate(zip(world.begins.tolist(), world.ends.tolist(), strict=True))
    ]
    fetches = per_year * world.pages
    policy = a_policy(per_hour=3600.0 * fetches / world.horizon)
    moments = [world.horizon * (n + 0.5) / 120 for n in range(120)]
    return calibrate(documents, policy, world.horizon / fetches, moments)


@pytest.mark.parametrize(("per_year", "most_off"), [(20, 30), (40, 12)])
def test_real_histories_are_right_within_two_points_in_every_month_and_within_half_a_point_over_the_year(
    per_year: int, most_off: int
) -> None:
    """Documents of many sites change on the same days: at one instant the estimate can be off by more."""
    points = real_histories(per_year)
    print(f"\n{per_year} visits a year\n{curve(points, DAY)}")
    gaps = [fmean(point.gap for point in points[first : first + 10]) for first in range(0, 120, 10)]
    print("by month:", *(f"{gap:+.1f}" for gap in gaps))
    off = sum(abs(point.gap) > POINTS for point in points)
    print(f"at {off} of {len(points)} instants by more than {POINTS:g}, at most by {worst(points):.1f}")
    assert all(abs(gap) <= POINTS for gap in gaps)
    assert abs(fmean(gaps)) <= 0.5
    assert off <= most_off


def test_pages_that_never_change_are_current_and_the_estimate_comes_to_say_so() -> None:
    documents = [Document(f"/{n}", "s1", 0.0, ()) for n in range(20)]
    points = calibrate(documents, a_policy(per_page_per_day=1.0), 600.0, [DAY * day for day in range(1, 60)])
    assert all(point.actual == 1.0 for point in points)
    assert points[-1].estimated > points[0].estimated
    assert points[-1].estimated > 0.95
