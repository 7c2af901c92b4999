"""The law of the log of changes, a part of the `Documents` port."""

from __future__ import annotations

from levada.adapters.keeping import TIDIED_EVERY
from levada.adapters.limits import StoreLimits
from levada.records import Happened
from tests.contracts.conftest import OpenStore
from tests.visits import Store, changed, failed, first, gone, links, unchanged, visited


def test_every_change_is_logged_once_and_stays_as_it_was(store: Store) -> None:
    visited(store, "http://a/", "a", "one", 0.0)
    seen = store.happenings(0, 10)
    for step, text in enumerate(["two", "three"], start=1):
        (lease,) = store.lease(step * 60.0, 1, 30.0)
        store.settle([changed(lease, step * 60.0, text)])
    log = store.happenings(0, 10)
    assert log[:1] == seen
    assert [(each.what, each.version, each.at, each.title, each.url, each.site) for each in log] == [
        (Happened.NEW, 1, 0.0, "One", "http://a/", "a"),
        (Happened.CHANGED, 2, 60.0, "Two", "http://a/", "a"),
        (Happened.CHANGED, 3, 120.0, "Three", "http://a/", "a"),
    ]
    assert log[-1].seq == store.changes(0, 10)[-1].seq


def test_the_log_is_read_on_from_any_step(store: Store) -> None:
    store.add(links("a", 5), [], 0.0)
    for number, lease in enumerate(store.lease(0.0, 5, 60.0)):
        store.settle([first(lease, float(number), f"text {number}")])
    log = store.happenings(0, 10)
    assert [each.seq for each in log] == sorted({each.seq for each in log})
    for cut in range(6):
        assert store.happenings(log[cut - 1].seq if cut else 0, 10) == log[cut:]
        assert store.happenings(0, cut) == log[:cut]


def test_visits_that_change_nothing_stored_are_not_logged(store: Store) -> None:
    visited(store, "http://a/", "a", "one", 0.0)
    (lease,) = store.lease(100.0, 1, 60.0)
    store.settle([unchanged(lease, 100.0)])
    (lease,) = store.lease(200.0, 1, 60.0)
    store.settle([failed(lease, 200.0)])
    assert len(store.happenings(0, 10)) == 1


def test_a_page_that_goes_and_comes_back_says_so(store: Store) -> None:
    visited(store, "http://a/", "a", "one", 0.0)
    for step, settled in enumerate([gone, gone], start=1):
        (lease,) = store.lease(step * 100.0, 1, 60.0)
        store.settle([settled(lease, step * 100.0, next_visit=step * 100.0 + 50.0)])
    (lease,) = store.lease(300.0, 1, 60.0)
    store.settle([unchanged(lease, 300.0)])
    assert [each.what for each in store.happenings(0, 10)] == [Happened.NEW, Happened.GONE, Happened.BACK]


def test_a_page_that_comes_back_with_other_content_is_back(store: Store) -> None:
    visited(store, "http://a/", "a", "one", 0.0)
    (lease,) = store.lease(100.0, 1, 60.0)
    store.settle([gone(lease, 100.0, next_visit=150.0)])
    (lease,) = store.lease(200.0, 1, 60.0)
    store.settle([changed(lease, 200.0, "two")])
    log = store.happenings(0, 10)
    assert [(each.what, each.version) for each in log] == [
        (Happened.NEW, 1),
        (Happened.GONE, 1),
        (Happened.BACK, 2),
    ]


def test_a_visit_whose_lease_was_lost_is_not_logged(store: Store) -> None:
    store.add(links("a", 1), [], 0.0)
    (late,) = store.lease(0.0, 1, 1.0)
    (now,) = store.lease(10.0, 1, 60.0)
    assert store.settle([first(now, 11.0, "now"), first(late, 12.0, "late")]) == [True, False]
    assert [each.at for each in store.happenings(0, 10)] == [11.0]


def test_titles_go_with_their_versions_and_old_entries_with_time(open_store: OpenStore) -> None:
    store = open_store(StoreLimits(keep_versions=1, keep_happenings=3))
    visited(store, "http://a/", "a", "text 0", 0.0)
    for step in range(1, TIDIED_EVERY + 2):
        (lease,) = store.lease(step * 60.0, 1, 30.0)
        store.settle([changed(lease, step * 60.0, f"text {step}")])
    log = store.happenings(0, 1000)
    assert [each.seq for each in log] == list(range(TIDIED_EVERY - 2, TIDIED_EVERY + 3))
    assert [each.title for each in log] == ["", "", "", "", f"Text {TIDIED_EVERY + 1}"]


def test_old_entries_go_too_where_the_time_for_it_comes_within_a_batch(open_store: OpenStore) -> None:
    store = open_store(StoreLimits(keep_happenings=3))
    store.add(links("a", TIDIED_EVERY + 2), [], 0.0)
    leases = store.lease(0.0, TIDIED_EVERY + 2, 60.0)
    store.settle([first(lease, 1.0, f"text {lease.page.id}") for lease in leases])
    log = store.happenings(0, 1000)
    assert [each.seq for each in log] == list(range(TIDIED_EVERY - 2, TIDIED_EVERY + 3))
    assert [each.page_id for each in log] == [lease.page.id for lease in leases[-5:]]
