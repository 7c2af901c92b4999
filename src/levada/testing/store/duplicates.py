"""Contract of what a store knows of duplicates: the page of a text, and near-duplicate runs."""

from __future__ import annotations

from levada.core.records import FoundUrl, Lease, PageState, PageText
from levada.pages.urls import NearDuplicateRuns
from levada.store.base import Store
from levada.testing.store.visits import (
    StoreSuite,
    changed,
    first,
    gone,
    leased,
    links,
    new_version,
    page_of,
    unchanged,
    visit,
    visited,
)

NOINDEX = b"digest of a text\2...."  # as `levada.pages.change.page_digest` writes it


def original(store: Store, text: str, site: str = "a") -> str | None:
    (url,) = store.originals([PageText(site, b"t" + text.encode())])
    return url


class DuplicateContract(StoreSuite):
    """The page of a text, and near-duplicate runs."""

    def test_a_stored_page_is_found_by_its_text(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        visited(store, "http://b/", "b", "two", 0.0)
        texts = [PageText("b", b"ttwo"), PageText("a", b"tnone"), PageText("a", b"tone"), PageText("b", b"tone")]
        assert store.originals(texts) == ["http://b/", None, "http://a/", None]
        assert store.originals([]) == []
        assert store.originals([PageText("a", b"")]) == [None]

    def test_a_page_is_found_by_its_newest_text_only(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        visit(store, 60.0, changed, "two")
        assert (original(store, "one"), original(store, "two")) == (None, "http://a/")
        visit(store, 120.0, unchanged, etag='"x"', text_digest=b"ttwo", body_digest=b"other")
        assert original(store, "two") == "http://a/"

    def test_a_page_that_left_search_is_not_found_until_it_is_back(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        visit(store, 60.0, gone, next_visit=120.0)
        assert original(store, "one") is None
        visit(store, 120.0, unchanged)
        assert original(store, "one") == "http://a/"
        visit(store, 180.0, unchanged, state=PageState.ELSEWHERE, leads_to="http://a/x")
        assert original(store, "one") is None

    def test_a_page_that_asks_for_noindex_is_not_found(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        hidden = new_version("one", searchable=False)
        visit(store, 60.0, unchanged, version=hidden, body_digest=b"b", text_digest=NOINDEX)
        assert original(store, "one") is None
        assert store.originals([PageText("a", NOINDEX[:16])]) == [None]

    def test_of_several_pages_with_one_text_the_first_is_found(self, store: Store) -> None:
        store.commit([first(lease, 0.0, "one") for lease in leased(store, 3)])
        urls = [each.url for each in links("a", 3)]
        assert original(store, "one") == min(urls, key=lambda url: page_of(store, url).id)

    def test_an_original_is_dropped_if_another_page_has_its_text_by_now(self, store: Store) -> None:
        one, other, elsewhere = leased(store, 2) + _lease_of(store, "http://b/", "b")
        assert store.commit([first(one, 0.0, "same", is_original=True)]) == [True]
        both = [first(other, 1.0, "same", is_original=True), first(elsewhere, 1.0, "same", is_original=True)]
        assert store.commit(both) == [False, True]
        assert page_of(store, other.page.url).visits == 0
        (again,) = store.lease(100.0, 5, 30.0, due=0.0)
        assert again.page.url == other.page.url  # its lease has ended by itself
        assert store.commit([first(again, 100.0, "other", is_original=True)]) == [True]

    def test_near_duplicate_runs_are_kept_with_their_site(self, store: Store) -> None:
        one, other, elsewhere = leased(store, 2) + _lease_of(store, "http://b/", "b")
        assert store.near_runs(["a", "b", "unknown"]) == {}
        assert store.near_runs([]) == {}
        runs = [_runs(1), _runs(2), _runs(7)]
        store.commit([first(one, 0.0, "x", near_runs=runs[0]), first(other, 0.0, "y", near_runs=runs[1])])
        store.commit([first(elsewhere, 0.0, "z", near_runs=runs[2])])
        assert store.near_runs(["a", "b", "unknown"]) == {"a": runs[1], "b": runs[2]}
        assert store.commit([first(one, 1.0, "late", near_runs=_runs(9))]) == [False]
        visit(store, 60.0, unchanged)
        assert store.near_runs(["a"]) == {"a": runs[1]}


def _runs(observed: int) -> bytes:
    """Packed runs that have observed so many pages."""
    runs = NearDuplicateRuns()
    for number in range(observed):
        runs.observe(f"http://a/{number}", b"1234", 0)
    return runs.packed()


def _lease_of(store: Store, url: str, site: str) -> list[Lease]:
    store.add([FoundUrl(url, site)], [], 0.0)
    return store.lease(0.0, 1, 60.0)
