"""Lower limits bring pages forward, spread over the new limit; a guard that allows more ends its refusals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.core.reasons import Reason
from levada.core.records import FoundUrl, PageState, RobotsRecord, SiteRecord
from levada.core.settings import RevisitSettings, Settings
from levada.crawl.rescheduling import Rescheduling, brought_within, latest_visit
from levada.store.memory import MemoryStore
from levada.testing.store.visits import failed, first, links, page_of
from tests.crawl.simulated_crawl import DAY, HOUR

NOW = 1_000_000.0


def changed(**values: Any) -> Settings:
    return Settings().replace({f"revisit.{name}": value for name, value in values.items()})


def stored(count: int, interval: float, site: str = "a") -> MemoryStore:
    """A store of pages that were all visited just now, and are to be visited after this interval."""
    store = MemoryStore()
    store.add(links(site, count), [], NOW)
    leases = store.lease(NOW, count, 60.0)
    store.commit([first(lease, NOW, lease.page.url, interval=interval) for lease in leases])
    return store


def plans(store: MemoryStore, count: int, site: str = "a") -> list[float]:
    return sorted((page_of(store, f"http://{site}/{n}").next_visit or 0.0) - NOW for n in range(count))


def test_a_lower_ceiling_brings_pages_within_it_and_spreads_them_evenly() -> None:
    store = stored(2_000, 30 * DAY)
    rescheduling = Rescheduling(store, Settings(), changed(ceiling=HOUR), NOW)
    assert rescheduling.run() == 2_000
    waits = plans(store, 2_000)
    assert 0 <= waits[0] <= waits[-1] < HOUR
    by_minute = [sum(60 * n <= wait < 60 * (n + 1) for wait in waits) for n in range(60)]
    assert max(by_minute) < 3 * 2_000 / 60
    assert Rescheduling(store, Settings(), changed(ceiling=HOUR), NOW).run() == 0, "a second time changes nothing"


def test_documents_that_wait_for_an_extra_are_due_once_it_is_installed() -> None:
    store = MemoryStore()
    store.add(links("a", 2), [], NOW)
    one, other = store.lease(NOW, 2, 60.0)
    waits = replace(failed(one, NOW), reason=Reason.NEEDS_EXTRA, next_visit=NOW + DAY)
    store.commit([waits, replace(failed(other, NOW), reason=Reason.CONTENT_TYPE, next_visit=NOW + DAY)])
    assert Rescheduling(store, Settings(), Settings(), NOW).run() == 0
    assert Rescheduling(store, Settings(), Settings(), NOW, no_longer={Reason.NEEDS_EXTRA}).run() == 1
    assert plans(store, 2) == [0.0, DAY]


def test_each_step_is_one_small_part() -> None:
    store = stored(1_200, 30 * DAY)
    rescheduling = Rescheduling(store, Settings(), changed(ceiling=HOUR), NOW)
    moved = []
    while rescheduling.step():
        moved.append(rescheduling.moved)
    assert moved == [500, 1_000, 1_200]


@pytest.mark.parametrize("values", [{}, {"ceiling": 60 * DAY}, {"floor": HOUR}, {"first": 2 * HOUR}, {"gone": 2 * DAY}])
def test_higher_limits_bring_nothing_forward(values: dict[str, float]) -> None:
    store = stored(10, 300.0)
    rescheduling = Rescheduling(store, Settings(), changed(**values), NOW)
    assert not rescheduling.is_needed
    assert rescheduling.run() == 0


def test_pages_that_stood_at_the_old_floor_come_within_the_new_one() -> None:
    store = stored(50, 300.0)
    store.add(links("b", 50), [], NOW)
    store.commit([first(lease, NOW, lease.page.url, interval=HOUR) for lease in store.lease(NOW, 50, 60.0)])
    assert Rescheduling(store, Settings(), changed(floor=10.0), NOW).run() == 50
    assert plans(store, 50)[-1] <= 10.0
    assert plans(store, 50, "b") == [HOUR] * 50, "the policy chose that"


def test_pages_that_count_more_come_sooner_and_others_stay() -> None:
    store = stored(50, DAY)
    settings = changed(importance={"http://a/1": 4.0})
    assert Rescheduling(store, Settings(), settings, NOW).run() == 11
    assert all((page_of(store, f"http://a/{n}").next_visit or 0) - NOW <= DAY / 2 for n in (1, *range(10, 20)))
    assert page_of(store, "http://a/2").next_visit == NOW + DAY


def test_a_page_that_fails_comes_within_the_new_longest_retry() -> None:
    store = stored(2, HOUR)
    leases = store.lease(NOW + HOUR, 2, 60.0)
    store.commit([failed(lease, NOW + HOUR, again=DAY, failures=9, reason=Reason.CONNECT) for lease in leases])
    settings = changed(max_retry=600.0)
    # Without a digest of a stored text the ceiling bounds the retry.
    lower = Rescheduling(store, Settings(), changed(max_retry=600.0, ceiling=HOUR), NOW + HOUR)
    assert lower.run() == 2
    assert all(wait <= 2 * HOUR for wait in plans(store, 2))
    page = replace(page_of(store, "http://a/0"), text_digest=b"x", next_visit=NOW + 9 * DAY)
    assert latest_visit(page, Settings().revisit, settings.revisit, NOW) == NOW + 660.0


@given(
    st.floats(1.0, 1e7),
    st.floats(1.0, 1e7),
    st.floats(0.0, 1e8),
    st.integers(1, 2**40),
)
def test_nothing_is_put_off_and_nothing_waits_beyond_the_ceiling(
    old: float, new: float, wait: float, page_id: int
) -> None:
    store = stored(1, HOUR)
    page = replace(page_of(store, "http://a/0"), id=page_id, next_visit=NOW + wait)
    before, now = RevisitSettings(ceiling=old), RevisitSettings(ceiling=new)
    latest = latest_visit(page, before, now, NOW)
    assert (latest is None) is (new >= old)
    if latest is not None:
        moved = brought_within(page, latest, NOW)
        assert moved is None or NOW <= moved < NOW + wait
        assert (moved if moved is not None else NOW + wait) <= NOW + new


def test_what_the_guard_refused_is_due_when_it_allows_more() -> None:
    store = stored(1, HOUR)
    store.add([FoundUrl("http://10.0.0.1/", "10.0.0.1")], [], NOW)
    (lease,) = store.lease(NOW, 1, 60.0)
    refused = failed(lease, NOW, again=9 * DAY, reason=Reason.ADDRESS)
    store.commit([replace(refused, state=PageState.REFUSED)])
    robots = RobotsRecord("", NOW, NOW + 600.0, Reason.ADDRESS)
    store.save(SiteRecord("10.0.0.1", robots=(("http", robots),)))
    narrow, wide = Settings(), Settings().replace({"guard.allow": ["10.0.0.1:80"]})
    assert Rescheduling(store, wide, narrow, NOW + 5).run() == 0
    assert Rescheduling(store, narrow, wide, NOW + 5).run() == 1
    assert page_of(store, "http://10.0.0.1/").next_visit == NOW + 5
    assert page_of(store, "http://a/0").next_visit == NOW + HOUR
    site = store.site("10.0.0.1")
    assert site is not None
    assert site.robots == ()
