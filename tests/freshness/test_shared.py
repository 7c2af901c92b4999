"""Shared changes: what a visit to one page says about the others of its site."""

from __future__ import annotations

import struct
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.records import Outcome, PageRecord, Visit
from levada.freshness import LearnedRevisit
from levada.freshness.evidence import Evidence
from levada.freshness.shared import (
    PAGE_WIDTH,
    SITE_WIDTH,
    begin,
    events_since,
    look,
    same_date,
    sentinel_wait,
    shared_chance,
    takes_part,
)
from tests.freshness.facts import DAY, HOUR, a_page, policy, visited

_visits = st.lists(st.tuples(st.integers(0, 4), st.floats(0.0, 1e7), st.booleans(), st.floats(0.0, 1.0)), max_size=80)


@given(_visits)
def test_chances_are_chances_and_events_never_negative(visits: list[tuple[int, float, bool, float]]) -> None:
    site, parts = [0.0] * SITE_WIDTH, [[0.0] * PAGE_WIDTH for _ in range(5)]
    last, now = [0.0] * 5, 1000.0
    begin(site, now)
    for page, later, changed, own in visits:
        now += later
        assert 0.0 <= look(site, parts[page], last[page], now, changed, own) <= 1.0
        last[page] = now
        assert all(
            0.0 <= shared_chance(site, part, then, now + later) <= 1.0 for part, then in zip(parts, last, strict=True)
        )
        assert all(0.0 <= takes_part(site, part) <= 1.0 and part[0] <= part[1] + 1e-9 <= 17.0 for part in parts)
        assert events_since(site, 0.0) >= 0.0
        assert min(site) >= 0.0


def a_site(changes: int, deploys: int = 8, pages: int = 20) -> tuple[LearnedRevisit, list[PageRecord], float]:
    """A site whose pages change together once a week, visited daily; after the last deploy, so many pages."""
    revisit = policy(per_hour=10)
    known = [visited(revisit, a_page(n), 60.0 * n, Outcome.FIRST) for n in range(pages)]
    for day in range(1, 7 * deploys + 1):
        outcome = Outcome.UNCHANGED if day % 7 else Outcome.CHANGED
        for n, page in enumerate(known[: changes if day == 7 * deploys else pages]):
            known[n] = visited(revisit, page, day * DAY + 60.0 * n, outcome)
    return revisit, known, 7 * deploys * DAY + 60.0 * changes


def test_a_change_met_on_some_pages_makes_it_likely_on_the_others_and_brings_their_visits_forward() -> None:
    revisit, pages, now = a_site(changes=3)
    other = pages[-1]
    assert revisit.estimates.shared(other, now) > 0.5
    expected = revisit.visit_after_hint(other, other.told)
    assert expected is not None
    assert other.next_visit is not None
    assert expected < other.next_visit
    assert revisit.estimates.shared(pages[0], now) < 0.1  # it was visited since


def test_quiet_visits_make_it_unlikely_again() -> None:
    revisit, pages, now = a_site(changes=1)
    before = revisit.estimates.shared(pages[-1], now)
    for n in range(1, 8):
        visited(revisit, pages[n], now + 60.0 * n, Outcome.UNCHANGED)
    assert revisit.estimates.shared(pages[-1], now + 600.0) < before / 2


def test_the_visit_that_meets_a_shared_change_says_so_once() -> None:
    revisit, pages, now = a_site(changes=0)
    said = []
    for n, page in enumerate(pages):
        before = revisit.plan(page, Visit(now + 60.0 * n, Outcome.CHANGED))
        said.append(before.site_changed)
    assert any(said[:4])
    assert not any(said[10:])


def test_a_change_that_an_event_explains_says_little_about_the_page() -> None:
    together, pages, _ = a_site(changes=20)
    alone = policy(per_hour=10)
    page = visited(alone, a_page(0), 0.0, Outcome.FIRST)
    for day in range(1, 57):
        page = visited(alone, page, day * DAY, Outcome.UNCHANGED if day % 7 else Outcome.CHANGED)
    still = together.estimates.calibrated(pages[-1])
    moving = alone.estimates.calibrated(page)
    assert sum(p * r for p, r in zip(still, together.estimates.scale.rates, strict=True)) < 0.5 * sum(
        p * r for p, r in zip(moving, alone.estimates.scale.rates, strict=True)
    )


def test_a_page_alone_on_its_site_is_never_explained_by_events() -> None:
    revisit = policy(per_hour=10)
    page = visited(revisit, a_page(0), 0.0, Outcome.FIRST)
    for day in range(1, 30):
        page = visited(revisit, page, day * DAY, Outcome.CHANGED)
    assert revisit.estimates.shared(page, 31 * DAY) < 0.2
    assert not revisit.plan(page, Visit(30 * DAY, Outcome.CHANGED)).site_changed


def test_pages_that_change_independently_do_not_look_like_events() -> None:
    chance, revisit = Random(4), policy(per_hour=20)
    pages = [visited(revisit, a_page(n), 60.0 * n, Outcome.FIRST) for n in range(20)]
    foreseen = 0
    for step in range(1, 60):
        for n, page in enumerate(pages):
            now = step * 6 * HOUR + 60.0 * n
            foreseen += revisit.estimates.shared(page, now) >= 0.5
            outcome = Outcome.CHANGED if chance.random() < 0.2 else Outcome.UNCHANGED
            pages[n] = visited(revisit, page, now, outcome)
    assert foreseen < 0.02 * 60 * 20


def test_one_page_of_a_site_at_a_time_is_the_sentinel() -> None:
    site, page = [0.0] * SITE_WIDTH, [0.0] * PAGE_WIDTH
    begin(site, DAY)
    wait = sentinel_wait(site, page, 50.0, 600.0, 2 * DAY)
    assert 0.0 < wait < inf
    assert sentinel_wait(site, page, 50.0, 600.0, 2 * DAY + wait / 2) == inf
    assert sentinel_wait(site, page, 50.0, 600.0, 2 * DAY + wait + 1.0) < inf
    assert sentinel_wait([0.0] * SITE_WIDTH, page, 1.0, 600.0, DAY) == inf


def test_a_date_that_many_pages_have_is_that_of_a_deploy() -> None:
    site = [0.0] * SITE_WIDTH
    dates = [DAY, DAY + 30.0, DAY + 90.0, DAY + 5.0, 9 * DAY, DAY + 60.0]
    assert [same_date(site, date) for date in dates] == [False, False, True, True, False, True]


def test_one_deploy_date_does_not_make_many_pages_change_fast() -> None:
    """Two hours ago all files were uploaded: each page did not change since, and no more is known."""

    revisit = policy(per_hour=10)
    pages = [visited(revisit, a_page(n), 60.0 * n, Outcome.FIRST, modified=-2 * HOUR) for n in range(50)]
    assert (pages[-1].interval or 0.0) > 2 * (pages[0].interval or 0.0)


@given(st.floats(0.02, 16.0), st.floats(0.0, 1.0), st.none() | st.floats(0.0, 1.0), st.booleans())
def test_the_part_of_a_page_is_stored_in_six_bytes(
    covered: float, share: float, expected: float | None, dated: bool
) -> None:
    plan = [0.0] * 16
    memory = Evidence(plan, list(plan) if dated else plan, expected, [share * covered, covered]).packed()
    assert len(memory) == 38 + 33 * dated
    again = Evidence.of(memory)
    assert again.part == pytest.approx([share * covered, covered], abs=0.02)
    assert (again.cautious is again.plan) is not dated
    assert again.expected == (None if expected is None else pytest.approx(expected, abs=1e-3))


@pytest.mark.parametrize("end", [b"", struct.pack("<ec", 0.25, b"p")])
def test_what_earlier_versions_stored_is_read(end: bytes) -> None:
    again = Evidence.of(struct.pack("<16e", *([-1.0] * 16)) + end)
    assert again.plan == [-1.0] * 16
    assert again.part == [0.0, 0.0]
    assert again.expected == (0.25 if end else None)
