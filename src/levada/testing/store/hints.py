"""Contract of change hints: a sitemap or a feed names a page that changed, and its visit comes sooner."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, nan

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.core.records import ChangeHint, PageRecord, Signals, SiteRecord, VisitResult
from levada.store.base import Store, StoreLimits
from levada.testing.common import properties
from levada.testing.store.visits import (
    OpenStore,
    StoreSuite,
    changed,
    failed,
    first,
    gone,
    leased,
    links,
    page_of,
    unchanged,
    visit,
    visited,
)

MET = 100.0
PLANNED = 1000.0
PAGES = 5

signals = st.sampled_from([Signals.SITEMAP, Signals.FEED, Signals.SITEMAP | Signals.FEED, Signals.NOTHING])
pages_hinted = st.lists(
    st.tuples(st.integers(0, PAGES - 1), signals, st.floats(1.0, 2000.0) | st.sampled_from([None, nan, inf, -inf])),
    max_size=12,
)
hints_of_pages = st.lists(
    st.builds(
        lambda n, at, said: ChangeHint(f"http://a/{n}", at, said),
        st.integers(0, PAGES + 2),
        st.floats(MET - 5.0, MET + 5.0) | st.sampled_from([MET, nan, inf, -inf]),
        signals,
    ),
    max_size=15,
)
_property = properties(25, HealthCheck.function_scoped_fixture)


def stored(store: Store, count: int = PAGES) -> list[PageRecord]:
    """Pages visited at `MET` and planned for `PLANNED`."""
    leases = leased(store, count, seconds=PLANNED)
    store.commit([first(lease, MET, f"text {lease.page.id}", interval=PLANNED - MET) for lease in leases])
    return [_page(store, n) for n in range(count)]


def _page(store: Store, n: int = 0) -> PageRecord:
    return page_of(store, f"http://a/{n}")


def sitemap(n: int, at: float) -> ChangeHint:
    return ChangeHint(f"http://a/{n}", at, Signals.SITEMAP)


class ChangeHintContract(StoreSuite):
    """A hint brings a visit forward and never puts one off."""

    def test_a_page_is_outdated_if_it_was_met_before_the_change(self, store: Store) -> None:
        pages = stored(store)
        hints = [sitemap(0, MET + 1), sitemap(1, MET), sitemap(2, MET - 1), sitemap(4, MET + 1)]
        assert store.outdated(hints) == [pages[0], pages[4]]

    def test_pages_come_in_the_order_of_their_hints_and_once(self, store: Store) -> None:
        pages = stored(store)
        hints = [sitemap(n, MET + 1) for n in (3, 1, 3, 0, 1)]
        assert store.outdated(hints) == [pages[3], pages[1], pages[0]]

    def test_pages_without_a_document_are_not_outdated(self, store: Store) -> None:
        stored(store, 3)
        one, two, _ = store.lease(PLANNED, 3, 60.0)
        store.commit([gone(one, PLANNED, next_visit=PLANNED + 60.0), failed(two, PLANNED)])
        store.add(links("a", 2, start=3), [], PLANNED)
        (new,) = [lease for lease in store.lease(PLANNED, 1, 60.0) if lease.page.visits == 0]
        store.commit([failed(new, PLANNED)])
        hints = [sitemap(n, PLANNED + 1) for n in range(9)]
        assert [page.url for page in store.outdated(hints)] == ["http://a/1", "http://a/2"]

    def test_a_failed_visit_has_not_met_the_page(self, store: Store) -> None:
        stored(store, 1)
        visit(store, PLANNED, failed)
        assert len(store.outdated([sitemap(0, MET + 1)])) == 1
        visit(store, PLANNED + 60.0, unchanged)
        assert store.outdated([sitemap(0, MET + 1)]) == []

    def test_a_second_hint_of_the_same_source_is_ignored(self, store: Store) -> None:
        (page,) = stored(store, 1)
        store.bring_forward([(page, Signals.SITEMAP, None)])
        assert _page(store) == replace(page, told=Signals.SITEMAP)
        assert store.outdated([sitemap(0, MET + 5)]) == []
        feed = ChangeHint("http://a/0", MET + 5, Signals.FEED)
        assert store.outdated([sitemap(0, MET + 5), feed]) == [_page(store)]
        store.bring_forward([(_page(store), Signals.FEED, None)])
        assert _page(store).told == Signals.SITEMAP | Signals.FEED
        assert store.outdated([feed]) == []

    def test_a_page_brought_forward_is_leased_when_it_is_due_with_its_hints(self, store: Store) -> None:
        page, *others = stored(store)
        store.bring_forward([(page, Signals.FEED, 500.0)])
        assert store.stats(200.0).next_due == 500.0
        assert store.lease(499.0, 9, 60.0) == []
        (lease,) = store.lease(500.0, 9, 600.0)
        assert lease.page == replace(page, told=Signals.FEED, next_visit=500.0) == _page(store)
        assert {lease.page.id for lease in store.lease(PLANNED, 9, 600.0)} == {other.id for other in others}

    @pytest.mark.parametrize("at", [PLANNED, PLANNED + 1.0, None, inf, -inf, nan])
    def test_a_visit_is_never_put_off_nor_moved_by_no_time(self, store: Store, at: float | None) -> None:
        (page,) = stored(store, 1)
        store.bring_forward([(page, Signals.SITEMAP, at)])
        assert _page(store) == replace(page, told=Signals.SITEMAP)
        assert len(store.lease(PLANNED, 1, 60.0)) == 1

    def test_a_page_that_is_leased_is_left_alone(self, store: Store) -> None:
        (page,) = stored(store, 1)
        (lease,) = store.lease(PLANNED, 1, 60.0)
        store.bring_forward([(page, Signals.SITEMAP, 500.0)])
        assert _page(store) == page
        store.release([lease])
        store.bring_forward([(page, Signals.SITEMAP, 500.0)])
        assert _page(store) == replace(page, told=Signals.SITEMAP, next_visit=500.0)

    def test_a_page_whose_holder_is_forgotten_is_brought_forward_and_stays_so_when_given_back(
        self, store: Store
    ) -> None:
        (page,) = stored(store, 1)
        (lease,) = store.lease(PLANNED, 1, 60.0)
        store.save(SiteRecord("a", delay=900.0))
        store.forget_leases()
        store.bring_forward([(page, Signals.SITEMAP, 500.0)])
        store.release([lease])
        assert _page(store) == replace(page, told=Signals.SITEMAP, next_visit=500.0)
        assert store.stats(0.0).next_due == 500.0

    def test_a_page_that_was_visited_meanwhile_is_left_alone(self, store: Store) -> None:
        (known,) = stored(store, 1)
        visit(store, PLANNED, unchanged, interval=900.0)
        page = _page(store)
        store.bring_forward([(known, Signals.SITEMAP, PLANNED + 1.0)])
        assert _page(store) == page

    def test_a_page_brought_forward_meanwhile_comes_at_the_earliest_time(self, store: Store) -> None:
        (page,) = stored(store, 1)
        store.bring_forward([(page, Signals.SITEMAP, 700.0)])
        store.bring_forward([(page, Signals.FEED, 800.0), (page, Signals.FEED, 600.0)])
        assert _page(store) == replace(page, told=Signals.SITEMAP | Signals.FEED, next_visit=600.0)

    def test_what_is_never_to_be_visited_again_is_not(self, store: Store) -> None:
        stored(store, 1)
        visit(store, PLANNED, unchanged, next_visit=None)
        store.bring_forward([(_page(store), Signals.SITEMAP, 1.0)])
        assert _page(store).next_visit is None
        assert store.lease(1e12, 1, 60.0) == []

    def test_a_page_never_visited_is_not_brought_forward(self, store: Store) -> None:
        store.add(links("a", 1), [], 50.0)
        page = _page(store)
        store.bring_forward([(page, Signals.SITEMAP, 1.0)])
        assert _page(store) == page

    def test_a_hint_for_an_unknown_page_does_nothing(self, open_store: OpenStore) -> None:
        (elsewhere,) = stored(open_store(StoreLimits()), 1)
        empty = open_store(StoreLimits())
        empty.bring_forward([(elsewhere, Signals.SITEMAP, 1.0)])
        assert empty.page(elsewhere.url) is None
        assert empty.lease(1e12, 1, 60.0) == []

    def test_a_hint_does_not_bring_a_polite_turn_or_the_end_of_a_backoff_forward(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(delay=50.0))
        visited(store, "http://a/0", "a", "text", 0.0)
        store.bring_forward([(_page(store), Signals.SITEMAP, 10.0)])
        assert store.lease(49.0, 1, 60.0) == []
        store.save(SiteRecord("a", rest_until=55.0))
        assert store.lease(54.0, 1, 60.0) == []
        assert len(store.lease(55.0, 1, 60.0)) == 1

    @pytest.mark.parametrize(
        ("result", "left"),
        [(partial(changed, text="new"), 0), (unchanged, 0), (failed, 16), (partial(gone, next_visit=600.0), 16)],
        ids=["changed", "unchanged", "failed", "gone"],
    )
    def test_a_visit_that_compares_answers_the_hints(
        self, store: Store, result: Callable[..., VisitResult], left: int
    ) -> None:
        (page,) = stored(store, 1)
        store.bring_forward([(page, Signals.SITEMAP, 500.0)])
        visit(store, 500.0, result)
        assert _page(store).told is Signals(left)

    def test_a_long_sitemap_is_read_to_its_end(self, store: Store) -> None:
        store.commit([first(lease, MET, "text", interval=PLANNED) for lease in leased(store, 2500, seconds=600.0)])
        hints = [sitemap(n, MET + n % 2) for n in range(3000)]
        outdated = store.outdated(hints)
        assert [page.url for page in outdated] == [f"http://a/{n}" for n in range(1, 2500, 2)]
        store.bring_forward([(page, Signals.SITEMAP, 200.0) for page in outdated])
        assert store.outdated(hints) == []
        assert len(store.lease(200.0, 3000, 60.0)) == 1250

    @pytest.mark.parametrize("url", ["", '"', "http://a/\ud800", "http://a/0\x00", "http://a/0\x00x", "http://a/ü"])
    def test_an_unknown_url_is_not_taken_for_another(self, store: Store, url: str) -> None:
        stored(store, 1)
        visited(store, "http://a/?", "a", "text", MET)
        assert store.outdated([ChangeHint(url, inf, Signals.SITEMAP)]) == []

    def test_no_hints_change_nothing(self, store: Store) -> None:
        assert store.outdated([]) == []
        store.bring_forward([])

    @_property
    @given(hints=hints_of_pages)
    def test_outdated_pages_are_those_visited_before_their_hints(
        self, open_store: OpenStore, hints: list[ChangeHint]
    ) -> None:
        store = open_store(StoreLimits())
        pages = stored(store)
        store.bring_forward([(pages[0], Signals.SITEMAP, None), (pages[1], Signals.FEED, None)])
        pages = [_page(store, n) for n in range(PAGES)]
        news = {
            hint.url
            for hint in hints
            for page in pages
            if page.url == hint.url and hint.at > MET and hint.said & ~page.told
        }
        assert {page.url for page in store.outdated(hints)} == news
        store.bring_forward([(page, Signals.SITEMAP | Signals.FEED, None) for page in store.outdated(hints)])
        assert store.outdated(hints) == []

    @_property
    @given(hints=pages_hinted)
    def test_each_page_is_visited_at_the_earliest_time_hinted_or_planned(
        self, open_store: OpenStore, hints: list[tuple[int, Signals, float | None]]
    ) -> None:
        store = open_store(StoreLimits())
        pages = stored(store)
        store.bring_forward([(pages[n], said, at) for n, said, at in hints])
        for n, page in enumerate(pages):
            mine = [(said, at) for which, said, at in hints if which == n]
            due = min([PLANNED, *(at for _, at in mine if at is not None and abs(at) < inf)])
            said = Signals(sum({flag for said, _ in mine for flag in said}))
            assert _page(store, n) == replace(page, next_visit=due, told=said)
        due_times = sorted({_page(store, n).next_visit or 0.0 for n in range(PAGES)})
        assert store.stats(0.0).next_due == due_times[0]
        for at in due_times:
            leased = store.lease(at, PAGES, 1e6)
            assert {lease.page.next_visit for lease in leased} == {at}
