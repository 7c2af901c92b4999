"""The law of the `Documents` port."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from levada.adapters.limits import StoreLimits
from levada.errors import StoreDamaged
from levada.records import PageState
from tests.contracts.conftest import OpenStore
from tests.visits import Store, changed, failed, first, gone, links, new_version, unchanged, visited


def test_a_stored_page_is_given_back_as_it_was(store: Store) -> None:
    lease = visited(store, "http://a/", "a", "some words", 5.0)
    document = store.document("http://a/")
    assert document is not None
    assert (document.page_id, document.url, document.site, document.version) == (lease.page.id, "http://a/", "a", 1)
    assert (document.title, document.text, document.body) == ("Some Words", "some words", b"<p>some words</p>")
    assert document.headers == (("content-type", "text/html"), ("server", "x"))
    assert (document.fetched_at, document.checked_at, document.words, document.status) == (5.0, 5.0, 2, 200)
    assert (document.searchable, document.gone) == (True, False)


def test_a_page_that_was_never_stored_has_no_document(store: Store) -> None:
    store.add(links("a", 1), [], 0.0)
    (lease,) = store.lease(0.0, 1, 60.0)
    store.settle([failed(lease, 1.0)])
    assert store.document("http://a/0") is None
    assert store.document("http://nowhere/") is None
    assert store.versions("http://nowhere/") == []
    assert list(store.scan()) == []


def test_checked_is_the_last_visit_that_met_the_version(store: Store) -> None:
    visited(store, "http://a/", "a", "x", 0.0)
    (lease,) = store.lease(60.0, 1, 60.0)
    store.settle([unchanged(lease, 61.0)])
    for step in range(2, 15):  # more failures than visits are remembered
        (lease,) = store.lease(step * 100.0, 1, 60.0)
        store.settle([failed(lease, step * 100.0)])
    document = store.document("http://a/")
    assert document is not None
    assert (document.fetched_at, document.checked_at) == (0.0, 61.0)


def test_versions_are_numbered_and_old_ones_are_kept_up_to_the_limit(open_store: OpenStore) -> None:
    store = open_store(StoreLimits(keep_versions=2))
    visited(store, "http://a/", "a", "one", 0.0)
    for step, text in enumerate(["two", "three"], start=1):
        (lease,) = store.lease(step * 60.0, 1, 30.0)
        store.settle([changed(lease, step * 60.0, text)])
    infos = store.versions("http://a/")
    assert [(each.version, each.fetched_at, each.title) for each in infos] == [
        (3, 120.0, "Three"),
        (2, 60.0, "Two"),
    ]
    older = store.document("http://a/", 2)
    assert older is not None
    assert (older.text, older.version, older.checked_at) == ("two", 2, 60.0)
    assert store.document("http://a/", 1) is None
    assert store.document("http://a/", 4) is None
    assert store.standing(0.0).versions == 2


def test_a_version_of_the_same_text_takes_the_place_of_the_newest(store: Store) -> None:
    """It has another title, or may be found now: a change for the index, and no news."""
    visited(store, "http://a/", "a", "one", 0.0)
    (lease,) = store.lease(60.0, 1, 30.0)
    store.settle([changed(lease, 60.0, "two")])
    before, seq, happened = store.standing(0.0), store.changes(0, 9)[-1].seq, store.happenings(0, 9)
    (lease,) = store.lease(120.0, 1, 30.0)
    amended = replace(new_version("two", similarity=1.0, searchable=False), title="Another")
    digests = {"body_digest": b"b", "text_digest": b"t"}
    store.settle([replace(unchanged(lease, 120.0), version=amended, **digests)])
    document = store.document("http://a/")
    assert document is not None
    assert (document.version, document.title, document.text) == (2, "Another", "two")
    assert (document.fetched_at, document.checked_at, document.similarity) == (60.0, 120.0, 0.4)
    assert not document.searchable
    assert [each.version for each in store.versions("http://a/")] == [2, 1]
    (change,) = store.changes(seq, 9)
    assert (change.url, change.document) == ("http://a/", None)
    assert [(each.seq, each.what) for each in store.happenings(0, 9)] == [
        (each.seq, each.what) for each in happened
    ]
    after = store.standing(0.0)
    assert (after.stored, after.versions) == (before.stored, before.versions)
    page = store.page("http://a/")
    assert page is not None
    assert (page.version, page.text_digest) == (2, b"t")


def test_a_batch_drops_the_old_versions_of_each_of_its_pages(open_store: OpenStore) -> None:
    store = open_store(StoreLimits(keep_versions=2))
    store.add(links("a", 3), [], 0.0)
    store.settle([first(lease, 0.0, "one") for lease in store.lease(0.0, 3, 30.0)])
    for step, count in enumerate([3, 2, 1], start=1):
        leases = sorted(store.lease(step * 60.0, 3, 30.0), key=lambda lease: lease.page.id)
        changes = [changed(lease, step * 60.0, f"text {step}") for lease in leases[:count]]
        store.settle([*changes, *(unchanged(lease, step * 60.0) for lease in leases[count:])])
    kept = [[each.version for each in store.versions(found.url)] for found in links("a", 3)]
    assert kept == [[4, 3], [3, 2], [2, 1]]
    assert store.standing(0.0).versions == 6


def test_changes_come_in_order_each_page_once_with_its_latest_state(store: Store) -> None:
    visited(store, "http://a/", "a", "one", 0.0)
    visited(store, "http://b/", "b", "other", 0.0)
    (lease, _) = store.lease(60.0, 2, 30.0)
    store.settle([changed(lease, 60.0, "two")])
    changes = store.changes(0, 10)
    assert [(each.url, each.document and each.document.text) for each in changes] == [
        ("http://b/", "other"),
        ("http://a/", "two"),
    ]
    assert [each.seq for each in changes] == sorted(each.seq for each in changes)
    assert store.changes(changes[0].seq, 10) == changes[1:]
    assert store.changes(0, 1) == changes[:1]
    assert store.changes(changes[-1].seq, 10) == []


def test_changes_leave_the_raw_body_out(store: Store) -> None:
    visited(store, "http://a/", "a", "one", 0.0)
    (change,) = store.changes(0, 10)
    assert change.document is not None
    assert change.document.body == b""


def test_an_unchanged_visit_is_no_change(store: Store) -> None:
    visited(store, "http://a/", "a", "one", 0.0)
    position = store.changes(0, 10)[-1].seq
    (lease,) = store.lease(60.0, 1, 30.0)
    store.settle([unchanged(lease, 60.0)])
    assert store.changes(position, 10) == []


def test_a_page_that_is_gone_leaves_search_but_keeps_its_versions(store: Store) -> None:
    visited(store, "http://a/", "a", "one", 0.0)
    position = store.changes(0, 10)[-1].seq
    (lease,) = store.lease(60.0, 1, 30.0)
    store.settle([gone(lease, 60.0, next_visit=120.0)])
    (change,) = store.changes(position, 10)
    assert (change.url, change.document) == ("http://a/", None)
    document = store.document("http://a/")
    assert document is not None
    assert (document.gone, document.text) == (True, "one")
    assert list(store.scan()) == []
    assert store.standing(60.0).stored == 0
    assert store.standing(60.0).versions == 1
    (lease,) = store.lease(120.0, 1, 30.0)
    store.settle([gone(lease, 120.0)])
    assert store.changes(change.seq, 10) == []


def test_a_page_that_comes_back_as_it_was_returns_to_search(store: Store) -> None:
    visited(store, "http://a/", "a", "one", 0.0)
    (lease,) = store.lease(60.0, 1, 30.0)
    store.settle([gone(lease, 60.0, next_visit=120.0)])
    (lease,) = store.lease(120.0, 1, 30.0)
    store.settle([failed(lease, 120.0)])
    (lease,) = store.lease(180.0, 1, 30.0)
    store.settle([unchanged(lease, 180.0)])
    (change,) = store.changes(2, 10)
    assert change.document is not None
    assert change.document.text == "one"
    assert store.standing(180.0).stored == 1


def test_a_page_that_moved_leaves_search(store: Store) -> None:
    visited(store, "http://a/", "a", "one", 0.0)
    (lease,) = store.lease(60.0, 1, 30.0)
    store.settle([replace(gone(lease, 60.0), state=PageState.ELSEWHERE)])
    (change,) = store.changes(1, 10)
    assert change.document is None


def test_a_page_that_does_not_want_to_be_found_is_stored_but_not_shown(store: Store) -> None:
    store.add(links("a", 1), [], 0.0)
    (lease,) = store.lease(0.0, 1, 30.0)
    store.settle([replace(first(lease, 0.0, "x"), version=new_version("hidden", searchable=False))])
    (change,) = store.changes(0, 10)
    assert change.document is None
    (document,) = store.scan()
    assert (document.text, document.searchable) == ("hidden", False)


def test_a_scan_gives_every_current_document_once(store: Store) -> None:
    store.add(links("a", 100), [], 0.0)
    store.settle([first(lease, 0.0, f"text {lease.page.id}") for lease in store.lease(0.0, 100, 30.0)])
    scanned = list(store.scan())
    assert [document.url for document in scanned] == [found.url for found in links("a", 100)]
    assert all(document.text == f"text {document.page_id}" for document in scanned)
    assert all(document.body for document in scanned)


def test_a_store_may_be_written_while_it_is_scanned(store: Store) -> None:
    store.add(links("a", 100), [], 0.0)
    leases = store.lease(0.0, 100, 30.0)
    store.settle([first(lease, 0.0, "x") for lease in leases[:90]])
    scan = store.scan()
    next(scan)
    store.settle([first(lease, 0.0, "x") for lease in leases[90:]])
    assert len(list(scan)) >= 89


def test_text_that_is_not_unicode_is_stored_with_question_marks(store: Store) -> None:
    store.add(links("a", 1), [], 0.0)
    (lease,) = store.lease(0.0, 1, 30.0)
    version = replace(new_version("x"), title="a\ud800b", headers=(("x", "\udfff"),))
    store.settle([replace(first(lease, 0.0, "x"), version=version, etag="\ud800")])
    document = store.document("http://a/0")
    page = store.page("http://a/0")
    assert document is not None
    assert page is not None
    assert (document.title, document.headers, page.etag) == ("a?b", (("x", "?"),), "?")


def test_content_that_was_never_packed_is_damage_and_says_so(store: Store) -> None:
    store.add(links("a", 1), [], 0.0)
    (lease,) = store.lease(0.0, 1, 30.0)
    store.settle([replace(first(lease, 0.0, "x"), version=replace(new_version("x"), content_zstd=b"not packed"))])
    with pytest.raises(StoreDamaged):
        store.document("http://a/0")
