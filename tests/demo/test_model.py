"""The world follows from its seed, has the source's counts, and its versions follow its changes."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.demo.changes import Pattern
from levada.demo.sites import linked_pages
from levada.demo.world import DemoWorld, Dynamics, PageRole, class_counts, share_out, site_figures

_DAYS = 86_400.0
_BANDS = {Dynamics.LOW: (0.0, 0.25), Dynamics.MEDIUM: (0.25, 0.5), Dynamics.HIGH: (0.5, 1.0)}


@cache
def the_world() -> DemoWorld:
    return DemoWorld.build(seed=1)


def _fingerprint(world: DemoWorld) -> str:
    until = world.origin + 2 * _DAYS
    return repr([(p.path, p.rhythm, list(world.changes_between(p, 0, until))) for p in world.pages[:200]])


def test_the_same_seed_makes_the_same_world_in_another_process() -> None:
    code = (
        "from tests.demo.test_model import _fingerprint, DemoWorld; import hashlib;"
        "print(hashlib.sha256(_fingerprint(DemoWorld.build(seed=7)).encode()).hexdigest())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            text=True,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_another_seed_makes_another_world() -> None:
    assert _fingerprint(DemoWorld.build(seed=1)) != _fingerprint(DemoWorld.build(seed=2))


def test_sites_and_pages_are_those_of_the_source() -> None:
    world = the_world()
    assert len(world.sites) == 23
    assert len(world.pages) == 1046
    assert {site.label: len(site.pages) for site in world.sites} == {f.name: f.pages for f in site_figures()}
    assert world.sites[0].host == "trendyol.localhost"


def test_class_counts_are_those_of_the_source() -> None:
    counted = Counter((page.site.category, page.dynamics) for page in the_world().pages)
    for category, counts in class_counts().items():
        assert {dynamics: counted[category, dynamics] for dynamics in Dynamics} == counts


def test_hourly_visits_meet_changes_as_often_as_the_class_says() -> None:
    world = the_world()
    hours = 24 * 30
    for page in world.pages[::5]:
        times = world.changes_between(page, world.origin, world.origin + hours * 3600)
        hits = len({int((at - world.origin - 1) // 3600) for at in times}) / hours
        if page.dynamics is Dynamics.STATIC:
            assert hits == 0
        else:
            low, high = _BANDS[page.dynamics]
            assert low < hits < high, (page.rhythm, hits)
            assert hits == pytest.approx(page.rhythm.hit_rate, abs=0.08)


def test_every_pattern_of_change_occurs() -> None:
    assert {page.rhythm.pattern for page in the_world().pages} == set(Pattern)


@settings(deadline=None)
@given(st.integers(0, 1045), st.floats(-_DAYS, 9 * _DAYS), st.floats(0, 3 * _DAYS))
def test_versions_count_the_changes_between(number: int, start: float, length: float) -> None:
    world = the_world()
    page = world.pages[number]
    t0, t1 = world.origin + start, world.origin + start + length
    changes = world.changes_between(page, t0, t1)
    assert world.version_at(page, t1) - world.version_at(page, t0) == len(changes)
    assert changes == sorted(set(changes))
    assert all(t0 < at <= t1 and at == int(at) for at in changes)


@settings(deadline=None)
@given(st.integers(0, 1045), st.floats(0, 20 * _DAYS), st.floats(0, 20 * _DAYS))
def test_the_order_of_asking_changes_nothing(number: int, first: float, second: float) -> None:
    asked, fresh = the_world(), DemoWorld(1, the_world().sites)
    page = asked.pages[number]
    asked.version_at(page, asked.origin + first)
    t = asked.origin + second
    assert asked.version_at(page, t) == fresh.version_at(page, t)


def test_a_version_comes_up_at_its_change() -> None:
    world = the_world()
    page = next(page for page in world.pages if page.dynamics is Dynamics.HIGH)
    for version in range(2, 20):
        at = world.changed_at(page, version)
        assert world.version_at(page, at) == version
        assert world.version_at(page, at - 0.001) == version - 1
    assert world.changed_at(page, 1) < world.origin


def test_a_static_page_has_no_second_version() -> None:
    page = next(page for page in the_world().pages if page.dynamics is Dynamics.STATIC)
    with pytest.raises(ValueError, match="never changes"):
        the_world().changed_at(page, 2)


@pytest.mark.parametrize("pages", [1, 10, 23, 24, 60, 600, 3000])
def test_a_world_has_as_many_pages_as_asked_for(pages: int) -> None:
    world = DemoWorld.build(pages=pages)
    assert len(world.pages) == pages
    assert len({world.url(page) for page in world.pages}) == pages
    assert [page.number for page in world.pages] == list(range(pages))
    _assert_reachable(world)


def test_a_world_without_pages_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one page"):
        DemoWorld.build(pages=0)


def _assert_reachable(world: DemoWorld) -> None:
    """Within two clicks of the front page, or in the sitemap alone."""
    for site in world.sites:
        near = {site.front, *linked_pages(site.front)}
        reached = near | {page for nearby in near for page in linked_pages(nearby)}
        assert {page for page in site.pages if not page.only_in_sitemap} == reached


def test_every_page_is_two_clicks_away_but_for_some_that_only_the_sitemap_names() -> None:
    _assert_reachable(the_world())
    hidden = [page for page in the_world().pages if page.only_in_sitemap]
    assert 20 <= len(hidden) <= 60
    assert {page.role for page in hidden} == {PageRole.ITEM}


def test_pages_are_found_by_address_whatever_the_port() -> None:
    world = the_world()
    page = world.pages[77]
    assert world.find(world.url(page)) is world.find(world.url(page, 8000)) is page
    assert world.find("http://nowhere.localhost/") is None
    assert world.find(world.url(page) + "?x=1") is None
    assert world.find("http://[bad/") is None


@settings(deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 500), min_size=1))
def test_shares_add_up_and_are_in_proportion(total: int, weights: list[int]) -> None:
    shares = share_out(total, weights)
    whole = sum(weights)
    assert sum(shares) == (total if whole else 0)
    assert all(abs(share - total * weight / whole) < 1 for share, weight in zip(shares, weights, strict=True) if whole)
