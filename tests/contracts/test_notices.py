"""The law of the `Notices` port."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.adapters.limits import StoreLimits
from levada.records import Notice, PageRecord, Said, Settled, SiteRecord
from tests.contracts.conftest import OpenStore
from tests.visits import Store, changed, failed, first, gone, links, unchanged, visited

MET = 100.0
PLANNED = 1000.0
PAGES = 5

told = st.sampled_from([Said.SITEMAP, Said.FEED, Said.SITEMAP | Said.FEED, Said.NOTHING])
pages_told = st.lists(
    st.tuples(st.integers(0, PAGES - 1), told, st.floats(1.0, 2000.0) | st.sampled_from([None, nan, inf, -inf])),
    max_size=12,
)
notices_of_pages = st.lists(
    st.builds(
        lambda n, at, said: Notice(f"http://a/{n}", at, said),
        st.integers(0, PAGES + 2),
        st.floats(MET - 5.0, MET + 5.0) | st.sampled_from([MET, nan, inf, -inf]),
        told,
    ),
    max_size=15,
)
lawful = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)


def stored(store: Store, count: int = PAGES) -> list[PageRecord]:
    """Pages met at `MET` that are to be visited at `PLANNED`."""
    store.add(links("a", count), [], 0.0)
    leases = store.lease(0.0, count, PLANNED)
    store.settle([first(lease, MET, f"text {lease.page.id}", interval=PLANNED - MET) for lease in leases])
    return [page_of(store, n) for n in range(count)]


def page_of(store: Store, n: int = 0) -> PageRecord:
    page = store.page(f"http://a/{n}")
    assert page is not None
    return page


def sitemap(n: int, at: float) -> Notice:
    return Notice(f"http://a/{n}", at, Said.SITEMAP)


def settled_next(store: Store, end: Settled) -> PageRecord:
    assert store.settle([end]) == [True]
    return page_of(store)


def test_a_page_is_outdated_if_it_was_met_before_the_change(store: Store) -> None:
    pages = stored(store)
    notices = [sitemap(0, MET + 1), sitemap(1, MET), sitemap(2, MET - 1), sitemap(4, MET + 1)]
    assert store.outdated(notices) == [pages[0], pages[4]]


def test_pages_come_in_the_order_told_and_once(store: Store) -> None:
    pages = stored(store)
    notices = [sitemap(n, MET + 1) for n in (3, 1, 3, 0, 1)]
    assert store.outdated(notices) == [pages[3], pages[1], pages[0]]


def test_pages_without_a_document_are_not_outdated(store: Store) -> None:
    stored(store, 3)
    one, two, _ = store.lease(PLANNED, 3, 60.0)
    store.settle([gone(one, PLANNED, next_visit=PLANNED + 60.0), failed(two, PLANNED)])
    store.add(links("a", 2, start=3), [], PLANNED)
    (new,) = [lease for lease in store.lease(PLANNED, 1, 60.0) if lease.page.visits == 0]
    store.settle([failed(new, PLANNED)])
    notices = [sitemap(n, PLANNED + 1) for n in range(9)]
    assert [page.url for page in store.outdated(notices)] == ["http://a/1", "http://a/2"]


def test_a_failed_visit_has_not_met_the_page(store: Store) -> None:
    stored(store, 1)
    (lease,) = store.lease(PLANNED, 1, 60.0)
    store.settle([failed(lease, PLANNED)])
    assert len(store.outdated([sitemap(0, MET + 1)])) == 1
    (lease,) = store.lease(PLANNED + 60.0, 1, 60.0)
    store.settle([unchanged(lease, PLANNED + 60.0)])
    assert store.outdated([sitemap(0, MET + 1)]) == []


def test_what_the_same_source_told_already_is_no_news(store: Store) -> None:
    (page,) = stored(store, 1)
    store.bring_forward([(page, Said.SITEMAP, None)])
    assert page_of(store) == replace(page, told=Said.SITEMAP)
    assert store.outdated([sitemap(0, MET + 5)]) == []
    feed = Notice("http://a/0", MET + 5, Said.FEED)
    assert store.outdated([sitemap(0, MET + 5), feed]) == [page_of(store)]
    store.bring_forward([(page_of(store), Said.FEED, None)])
    assert page_of(store).told == Said.SITEMAP | Said.FEED
    assert store.outdated([feed]) == []


def test_a_page_brought_forward_is_leased_when_it_is_due_with_what_was_told(store: Store) -> None:
    page, *others = stored(store)
    store.bring_forward([(page, Said.FEED, 500.0)])
    assert store.standing(200.0).next_due == 500.0
    assert store.lease(499.0, 9, 60.0) == []
    (lease,) = store.lease(500.0, 9, 600.0)
    assert lease.page == replace(page, told=Said.FEED, next_visit=500.0) == page_of(store)
    assert {lease.page.id for lease in store.lease(PLANNED, 9, 600.0)} == {other.id for other in others}


@pytest.mark.parametrize("at", [PLANNED, PLANNED + 1.0, None, inf, -inf, nan])
def test_a_visit_is_never_put_off_nor_moved_by_no_time(store: Store, at: float | None) -> None:
    (page,) = stored(store, 1)
    store.bring_forward([(page, Said.SITEMAP, at)])
    assert page_of(store) == replace(page, told=Said.SITEMAP)
    assert len(store.lease(PLANNED, 1, 60.0)) == 1


def test_a_page_that_is_leased_is_left_alone(store: Store) -> None:
    (page,) = stored(store, 1)
    (lease,) = store.lease(PLANNED, 1, 60.0)
    store.bring_forward([(page, Said.SITEMAP, 500.0)])
    assert page_of(store) == page
    store.release([lease])
    store.bring_forward([(page, Said.SITEMAP, 500.0)])
    assert page_of(store) == replace(page, told=Said.SITEMAP, next_visit=500.0)


def test_a_page_whose_holder_is_forgotten_is_brought_forward_and_stays_so_when_given_back(
    open_store: OpenStore,
) -> None:
    store = open_store(StoreLimits())
    (page,) = stored(store, 1)
    (lease,) = store.lease(PLANNED, 1, 60.0)
    store.save(SiteRecord("a", delay=900.0))
    store.forget_leases()
    store.bring_forward([(page, Said.SITEMAP, 500.0)])
    store.release([lease])
    assert page_of(store) == replace(page, told=Said.SITEMAP, next_visit=500.0)
    assert store.standing(0.0).next_due == 500.0


def test_a_page_that_was_visited_meanwhile_is_left_alone(store: Store) -> None:
    (known,) = stored(store, 1)
    (lease,) = store.lease(PLANNED, 1, 60.0)
    page = settled_next(store, unchanged(lease, PLANNED, interval=900.0))
    store.bring_forward([(known, Said.SITEMAP, PLANNED + 1.0)])
    assert page_of(store) == page


def test_a_page_brought_forward_meanwhile_comes_at_the_earliest_time_asked(store: Store) -> None:
    (page,) = stored(store, 1)
    store.bring_forward([(page, Said.SITEMAP, 700.0)])
    store.bring_forward([(page, Said.FEED, 800.0), (page, Said.FEED, 600.0)])
    both = Said.SITEMAP | Said.FEED
    assert page_of(store) == replace(page, told=both, next_visit=600.0)


def test_what_is_never_to_be_visited_again_is_not(store: Store) -> None:
    stored(store, 1)
    (lease,) = store.lease(PLANNED, 1, 60.0)
    page = settled_next(store, replace(unchanged(lease, PLANNED), next_visit=None))
    store.bring_forward([(page, Said.SITEMAP, 1.0)])
    assert page_of(store).next_visit is None
    assert store.lease(1e12, 1, 60.0) == []


def test_a_page_never_visited_is_not_brought_forward(store: Store) -> None:
    store.add(links("a", 1), [], 50.0)
    page = page_of(store)
    store.bring_forward([(page, Said.SITEMAP, 1.0)])
    assert page_of(store) == page


def test_of_a_page_that_is_not_held_nothing_is_noted(open_store: OpenStore) -> None:
    (elsewhere,) = stored(open_store(StoreLimits()), 1)
    empty = open_store(StoreLimits())
    empty.bring_forward([(elsewhere, Said.SITEMAP, 1.0)])
    assert empty.page(elsewhere.url) is None
    assert empty.lease(1e12, 1, 60.0) == []


def test_a_notice_does_not_bring_a_polite_turn_or_the_end_of_a_rest_forward(open_store: OpenStore) -> None:
    store = open_store(StoreLimits(delay=50.0))
    visited(store, "http://a/0", "a", "text", 0.0)
    store.bring_forward([(page_of(store), Said.SITEMAP, 10.0)])
    assert store.lease(49.0, 1, 60.0) == []
    store.save(SiteRecord("a", rest_until=55.0))
    assert store.lease(54.0, 1, 60.0) == []
    assert len(store.lease(55.0, 1, 60.0)) == 1


@pytest.mark.parametrize(("outcome", "left"), [("changed", 0), ("unchanged", 0), ("failed", 16), ("gone", 16)])
def test_what_was_told_is_answered_by_a_visit_that_compares(store: Store, outcome: str, left: int) -> None:
    (page,) = stored(store, 1)
    store.bring_forward([(page, Said.SITEMAP, 500.0)])
    (lease,) = store.lease(500.0, 1, 60.0)
    ends = {
        "changed": changed(lease, 500.0, "new"),
        "unchanged": unchanged(lease, 500.0),
        "failed": failed(lease, 500.0),
        "gone": gone(lease, 500.0, next_visit=600.0),
    }
    assert settled_next(store, ends[outcome]).told is Said(left)


def test_a_long_sitemap_is_heard_to_its_end(store: Store) -> None:
    store.add(links("a", 2500), [], 0.0)
    leases = store.lease(0.0, 2500, 600.0)
    store.settle([first(lease, MET, "text", interval=PLANNED) for lease in leases])
    notices = [sitemap(n, MET + n % 2) for n in range(3000)]
    outdated = store.outdated(notices)
    assert [page.url for page in outdated] == [f"http://a/{n}" for n in range(1, 2500, 2)]
    store.bring_forward([(page, Said.SITEMAP, 200.0) for page in outdated])
    assert store.outdated(notices) == []
    assert len(store.lease(200.0, 3000, 60.0)) == 1250


@pytest.mark.parametrize("url", ["", '"', "http://a/\ud800", "http://a/0\x00", "http://a/0\x00x", "http://a/ü"])
def test_an_address_that_nobody_holds_is_not_taken_for_another(store: Store, url: str) -> None:
    stored(store, 1)
    visited(store, "http://a/?", "a", "text", MET)
    assert store.outdated([Notice(url, inf, Said.SITEMAP)]) == []


def test_of_nothing_nothing_is_heard(store: Store) -> None:
    assert store.outdated([]) == []
    store.bring_forward([])


@lawful
@given(notices=notices_of_pages)
def test_outdated_are_those_met_before_news_of_them(open_store: OpenStore, notices: list[Notice]) -> None:
    store = open_store(StoreLimits())
    pages = stored(store)
    store.bring_forward([(pages[0], Said.SITEMAP, None), (pages[1], Said.FEED, None)])
    pages = [page_of(store, n) for n in range(PAGES)]
    news = {
        notice.url
        for notice in notices
        for page in pages
        if page.url == notice.url and notice.at > MET and notice.said & ~page.told
    }
    assert {page.url for page in store.outdated(notices)} == news
    store.bring_forward([(page, Said.SITEMAP | Said.FEED, None) for page in store.outdated(notices)])
    assert store.outdated(notices) == []


@lawful
@given(hints=pages_told)
def test_each_page_is_visited_at_the_earliest_time_told_or_planned(
    open_store: OpenStore, hints: list[tuple[int, Said, float | None]]
) -> None:
    store = open_store(StoreLimits())
    pages = stored(store)
    store.bring_forward([(pages[n], said, at) for n, said, at in hints])
    for n, page in enumerate(pages):
        mine = [(said, at) for which, said, at in hints if which == n]
        due = min([PLANNED, *(at for _, at in mine if at is not None and abs(at) < inf)])
        said = Said(sum({flag for said, _ in mine for flag in said}))
        assert page_of(store, n) == replace(page, next_visit=due, told=said)
    due_times = sorted({page_of(store, n).next_visit or 0.0 for n in range(PAGES)})
    assert store.standing(0.0).next_due == due_times[0]
    for at in due_times:
        leased = store.lease(at, PAGES, 1e6)
        assert {lease.page.next_visit for lease in leased} == {at}
