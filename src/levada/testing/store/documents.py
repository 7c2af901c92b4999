"""Contract of stored documents, of the change log that search and notifications follow, of samples and lookups."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import cast

import pytest
from msgspec.structs import replace

from levada.core.errors import StoreDamaged
from levada.core.hashing import drawn
from levada.core.records import ChangeKind, PageState
from levada.core.structured import EarlierOffers, Offer, unpack_data
from levada.store.base import Capability, Store, StoreLimits, WithLimits
from levada.store.rules import TIDIED_EVERY
from levada.testing.store.visits import (
    OpenStore,
    StoreSuite,
    changed,
    described,
    document_of,
    failed,
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


class DocumentContract(StoreSuite):
    """What was stored is given back as it was, and old versions up to a limit."""

    def test_a_stored_page_is_given_back_as_it_was(self, store: Store) -> None:
        lease = visited(store, "http://a/", "a", "some words", 5.0)
        document = document_of(store, "http://a/")
        assert (document.page_id, document.url, document.site) == (lease.page.id, "http://a/", "a")
        assert document.version == 1
        assert (document.title, document.text, document.body) == ("Some Words", "some words", b"<p>some words</p>")
        assert document.headers == (("content-type", "text/html"), ("server", "x"))
        assert (document.fetched_at, document.checked_at, document.words, document.status) == (5.0, 5.0, 2, 200)
        assert (document.searchable, document.gone) == (True, False)

    def test_a_page_that_was_never_stored_has_no_document(self, store: Store) -> None:
        (lease,) = leased(store)
        store.commit([failed(lease, 1.0)])
        assert store.document("http://a/0") is None
        assert store.document("http://nowhere/") is None
        assert store.versions("http://nowhere/") == []
        assert list(store.scan()) == []

    def test_checked_is_the_last_visit_that_met_the_version(self, store: Store) -> None:
        visited(store, "http://a/", "a", "x", 0.0)
        visit(store, 61.0, unchanged)
        for step in range(2, 15):  # more failures than visits are remembered
            visit(store, step * 100.0, failed)
        document = document_of(store, "http://a/")
        assert (document.fetched_at, document.checked_at) == (0.0, 61.0)

    def test_versions_are_numbered_and_old_ones_are_kept_up_to_the_limit(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(keep_versions=2))
        visited(store, "http://a/", "a", "one", 0.0)
        for step, text in enumerate(["two", "three"], start=1):
            visit(store, step * 60.0, changed, text)
        kept = [(each.version, each.fetched_at, each.title) for each in store.versions("http://a/")]
        assert kept == [(3, 120.0, "Three"), (2, 60.0, "Two")]
        older = document_of(store, "http://a/", 2)
        assert (older.text, older.version, older.checked_at) == ("two", 2, 60.0)
        assert store.document("http://a/", 1) is None
        assert store.document("http://a/", 4) is None
        assert store.stats(0.0).versions == 2

    def test_limits_that_are_set_while_it_is_open_hold_from_then_on(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(keep_versions=3))
        if Capability.LIMITS not in store.capabilities:
            return
        visited(store, "http://a/", "a", "one", 0.0)
        for step, text in enumerate(["two", "three"], start=1):
            visit(store, step * 60.0, changed, text)
        cast(WithLimits, store).set_limits(StoreLimits(keep_versions=2))
        assert [each.version for each in store.versions("http://a/")] == [3, 2, 1]
        visit(store, 180.0, changed, "four")
        assert [each.version for each in store.versions("http://a/")] == [4, 3]

    def test_a_version_of_the_same_text_takes_the_place_of_the_newest(self, store: Store) -> None:
        """It has another title, or is now searchable: a change for the index, but not for the change log."""
        visited(store, "http://a/", "a", "one", 0.0)
        visit(store, 60.0, changed, "two")
        before, seq, log = store.stats(0.0), store.changes(0, 9)[-1].seq, store.change_log(0, 9)
        amended = replace(new_version("two", similarity=1.0, searchable=False), title="Another")
        visit(store, 120.0, unchanged, version=amended, body_digest=b"b", text_digest=b"t")
        document = document_of(store, "http://a/")
        assert (document.version, document.title, document.text) == (2, "Another", "two")
        assert (document.fetched_at, document.checked_at, document.similarity) == (60.0, 120.0, 0.4)
        assert not document.searchable
        assert [each.version for each in store.versions("http://a/")] == [2, 1]
        (change,) = store.changes(seq, 9)
        assert (change.url, change.document) == ("http://a/", None)
        assert [(each.seq, each.what) for each in store.change_log(0, 9)] == [(each.seq, each.what) for each in log]
        after = store.stats(0.0)
        assert (after.stored, after.versions) == (before.stored, before.versions)
        page = page_of(store, "http://a/")
        assert (page.version, page.text_digest) == (2, b"t")

    def test_a_batch_drops_the_old_versions_of_each_of_its_pages(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(keep_versions=2))
        store.commit([first(lease, 0.0, "one") for lease in leased(store, 3)])
        for step, count in enumerate([3, 2, 1], start=1):
            leases = sorted(store.lease(step * 60.0, 3, 30.0), key=lambda lease: lease.page.id)
            changes = [changed(lease, step * 60.0, f"text {step}") for lease in leases[:count]]
            store.commit([*changes, *(unchanged(lease, step * 60.0) for lease in leases[count:])])
        kept = [[each.version for each in store.versions(found.url)] for found in links("a", 3)]
        assert kept == [[4, 3], [3, 2], [2, 1]]
        assert store.stats(0.0).versions == 6

    def test_structured_data_stays_with_its_version_and_with_what_amends_it(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        for at, price in ((60.0, "5"), (120.0, "5"), (180.0, "6")):
            priced = replace(new_version("one", similarity=1.0), data=described("one", price))
            visit(store, at, unchanged, version=priced, body_digest=b"b", text_digest=price.encode())
        visit(store, 240.0, changed, "two")

        second, first_one = store.versions("http://a/")
        assert (second.data, second.packed_data) == (unpack_data(described("two")), described("two"))
        assert (first_one.data.offers, first_one.data.since) == ((Offer("6"),), 180.0)
        assert first_one.data.earlier == (EarlierOffers(0.0), EarlierOffers(60.0, (Offer("5"),)))
        document = store.document("http://a/", 1)
        assert document is not None
        assert document.data == first_one.data
        (change,) = store.changes(0, 9)
        assert change.document is not None
        assert change.document.data == second.data

    def test_changes_come_in_order_each_page_once_with_its_latest_state(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        visited(store, "http://b/", "b", "other", 0.0)
        (lease, _) = store.lease(60.0, 2, 30.0)
        store.commit([changed(lease, 60.0, "two")])
        changes = store.changes(0, 10)
        texts = [(each.url, each.document and each.document.text) for each in changes]
        assert texts == [("http://b/", "other"), ("http://a/", "two")]
        assert [each.seq for each in changes] == sorted(each.seq for each in changes)
        assert store.changes(changes[0].seq, 10) == changes[1:]
        assert store.changes(0, 1) == changes[:1]
        assert store.changes(changes[-1].seq, 10) == []

    def test_changes_leave_the_raw_body_out(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        (change,) = store.changes(0, 10)
        assert change.document is not None
        assert change.document.body == b""

    def test_an_unchanged_visit_is_no_change(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        position = store.changes(0, 10)[-1].seq
        visit(store, 60.0, unchanged)
        assert store.changes(position, 10) == []

    def test_a_page_that_is_gone_leaves_search_but_keeps_its_versions(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        position = store.changes(0, 10)[-1].seq
        visit(store, 60.0, gone, next_visit=120.0)
        (change,) = store.changes(position, 10)
        assert (change.url, change.document) == ("http://a/", None)
        document = document_of(store, "http://a/")
        assert (document.gone, document.text) == (True, "one")
        assert list(store.scan()) == []
        assert store.stats(60.0).stored == 0
        assert store.stats(60.0).versions == 1
        visit(store, 120.0, gone)
        assert store.changes(change.seq, 10) == []

    def test_a_page_that_comes_back_as_it_was_returns_to_search(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        visit(store, 60.0, gone, next_visit=120.0)
        visit(store, 120.0, failed)
        visit(store, 180.0, unchanged)
        (change,) = store.changes(2, 10)
        assert change.document is not None
        assert change.document.text == "one"
        assert store.stats(180.0).stored == 1

    def test_a_page_that_moved_leaves_search(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        visit(store, 60.0, gone, state=PageState.ELSEWHERE)
        (change,) = store.changes(1, 10)
        assert change.document is None

    def test_a_page_that_does_not_want_to_be_found_is_stored_but_not_shown(self, store: Store) -> None:
        store.add(links("a", 1), [], 0.0)
        visit(store, 0.0, first, "x", version=new_version("hidden", searchable=False))
        (change,) = store.changes(0, 10)
        assert change.document is None
        (document,) = store.scan()
        assert (document.text, document.searchable) == ("hidden", False)

    def test_a_scan_gives_every_current_document_once(self, store: Store) -> None:
        store.commit([first(lease, 0.0, f"text {lease.page.id}") for lease in leased(store, 100)])
        scanned = list(store.scan())
        assert [document.url for document in scanned] == [found.url for found in links("a", 100)]
        assert all(document.text == f"text {document.page_id}" for document in scanned)
        assert all(document.body for document in scanned)

    def test_a_store_may_be_written_while_it_is_scanned(self, store: Store) -> None:
        leases = leased(store, 100)
        store.commit([first(lease, 0.0, "x") for lease in leases[:90]])
        scan = store.scan()
        next(scan)
        store.commit([first(lease, 0.0, "x") for lease in leases[90:]])
        assert len(list(scan)) >= 89

    def test_text_that_is_not_unicode_is_stored_with_question_marks(self, store: Store) -> None:
        store.add(links("a", 1), [], 0.0)
        version = replace(new_version("x"), title="a\ud800b", headers=(("x", "\udfff"),))
        visit(store, 0.0, first, "x", version=version, etag="\ud800")
        document = document_of(store, "http://a/0")
        page = page_of(store, "http://a/0")
        assert (document.title, document.headers, page.etag) == ("a?b", (("x", "?"),), "?")

    def test_content_that_was_never_packed_is_damage_and_says_so(self, store: Store) -> None:
        store.add(links("a", 1), [], 0.0)
        visit(store, 0.0, first, "x", version=replace(new_version("x"), content_zstd=b"not packed"))
        with pytest.raises(StoreDamaged):
            store.document("http://a/0")


class ChangeLogContract(StoreSuite):
    """Every change is logged once, in order, and an entry never changes."""

    def test_every_change_is_logged_once_and_stays_as_it_was(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        seen = store.change_log(0, 10)
        for step, text in enumerate(["two", "three"], start=1):
            visit(store, step * 60.0, changed, text)
        log = store.change_log(0, 10)
        assert log[:1] == seen
        assert [(each.what, each.version, each.at, each.title, each.url, each.site) for each in log] == [
            (ChangeKind.NEW, 1, 0.0, "One", "http://a/", "a"),
            (ChangeKind.CHANGED, 2, 60.0, "Two", "http://a/", "a"),
            (ChangeKind.CHANGED, 3, 120.0, "Three", "http://a/", "a"),
        ]
        assert log[-1].seq == store.changes(0, 10)[-1].seq

    def test_the_log_is_read_on_from_any_step(self, store: Store) -> None:
        for number, lease in enumerate(leased(store, 5)):
            store.commit([first(lease, float(number), f"text {number}")])
        log = store.change_log(0, 10)
        assert [each.seq for each in log] == sorted({each.seq for each in log})
        for cut in range(6):
            assert store.change_log(log[cut - 1].seq if cut else 0, 10) == log[cut:]
            assert store.change_log(0, cut) == log[:cut]

    def test_visits_that_change_nothing_stored_are_not_logged(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        visit(store, 100.0, unchanged)
        visit(store, 200.0, failed)
        assert len(store.change_log(0, 10)) == 1

    def test_a_version_that_is_not_told_is_stored_and_followed_but_not_logged(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        visit(store, 60.0, changed, "two", told=False)
        visit(store, 120.0, changed, "three")
        assert [each.version for each in store.versions("http://a/")] == [3, 2, 1]
        assert [(each.what, each.version) for each in store.change_log(0, 10)] == [
            (ChangeKind.NEW, 1),
            (ChangeKind.CHANGED, 3),
        ]

    def test_a_version_that_is_not_told_is_what_followers_read(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        seen = store.changes(0, 10)[-1].seq
        visit(store, 60.0, changed, "two", told=False)
        (change,) = store.changes(seen, 10)
        assert change.document is not None
        assert change.document.text == "two"

    def test_a_page_that_goes_and_comes_back_says_so(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        for at in (100.0, 200.0):
            visit(store, at, gone, next_visit=at + 50.0)
        visit(store, 300.0, unchanged)
        assert [each.what for each in store.change_log(0, 10)] == [ChangeKind.NEW, ChangeKind.GONE, ChangeKind.BACK]

    def test_a_page_that_comes_back_with_other_content_is_back(self, store: Store) -> None:
        visited(store, "http://a/", "a", "one", 0.0)
        visit(store, 100.0, gone, next_visit=150.0)
        visit(store, 200.0, changed, "two")
        kinds = [(each.what, each.version) for each in store.change_log(0, 10)]
        assert kinds == [(ChangeKind.NEW, 1), (ChangeKind.GONE, 1), (ChangeKind.BACK, 2)]

    def test_a_visit_whose_lease_was_lost_is_not_logged(self, store: Store) -> None:
        (late,) = leased(store, seconds=1.0)
        (now,) = store.lease(10.0, 1, 60.0)
        assert store.commit([first(now, 11.0, "now"), first(late, 12.0, "late")]) == [True, False]
        assert [each.at for each in store.change_log(0, 10)] == [11.0]

    def test_titles_go_with_their_versions_and_old_entries_with_time(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(keep_versions=1, keep_events=3))
        visited(store, "http://a/", "a", "text 0", 0.0)
        for step in range(1, TIDIED_EVERY + 2):
            visit(store, step * 60.0, changed, f"text {step}")
        log = store.change_log(0, 1000)
        assert [each.seq for each in log] == list(range(TIDIED_EVERY - 2, TIDIED_EVERY + 3))
        assert [each.title for each in log] == ["", "", "", "", f"Text {TIDIED_EVERY + 1}"]

    def test_old_entries_go_too_where_the_time_for_it_comes_within_a_batch(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(keep_events=3))
        leases = leased(store, TIDIED_EVERY + 2)
        store.commit([first(lease, 1.0, f"text {lease.page.id}") for lease in leases])
        log = store.change_log(0, 1000)
        assert [each.seq for each in log] == list(range(TIDIED_EVERY - 2, TIDIED_EVERY + 3))
        assert [each.page_id for each in log] == [lease.page.id for lease in leases[-5:]]


class PageSampleContract(StoreSuite):
    """A sample of one page in so many is drawn by the page number alone."""

    @pytest.fixture
    def crawled(self, store: Store) -> Store:
        """One page in three is stored, one failed and one was stored and is gone; some are new."""
        for site in "abc":
            store.add(links(site, 300), [], 0.0)
        leases = store.lease(0.0, 900, 60.0)
        store.commit([failed(each, 0.0) if each.page.id % 3 == 0 else first(each, 0.0, "text") for each in leases])
        leases = store.lease(60.0, 900, 60.0)
        store.commit([gone(each, 60.0) for each in leases if each.page.id % 3 == 1])
        store.add(links("d", 20), [], 60.0)
        return store

    @pytest.mark.parametrize("one_in", [1, 2, 8, 64, 1 << 20, 1 << 40])
    def test_a_sample_is_exactly_the_pages_drawn_that_have_a_document(self, crawled: Store, one_in: int) -> None:
        there = [document.page_id for document in crawled.scan() if drawn(document.page_id, one_in)]
        sample = list(crawled.sample(one_in))
        assert [page.id for page in sample] == there
        assert all(page == crawled.page(page.url) for page in sample)

    def test_a_sample_of_one_in_twice_as_many_is_part_of_it(self, crawled: Store) -> None:
        samples = [{page.id for page in crawled.sample(1 << power)} for power in range(8)]
        assert all(smaller <= larger for larger, smaller in pairwise(samples))
        assert len(samples[0]) == crawled.live_pages() == crawled.stats(0.0).stored > 256

    def test_a_page_that_is_gone_is_no_longer_counted_and_one_that_is_back_is(self, store: Store) -> None:
        visited(store, "http://a/0", "a", "x", 0.0)
        assert store.live_pages() == len(list(store.sample(1))) == 1
        for at, end, held in ((60.0, partial(gone, next_visit=120.0), 0), (120.0, failed, 0), (180.0, unchanged, 1)):
            visit(store, at, end)
            assert store.live_pages() == len(list(store.sample(1))) == held
        assert page_of(store, "http://a/0").state is PageState.LIVE

    def test_a_store_may_be_written_while_it_is_sampled(self, store: Store) -> None:
        leases = leased(store, 400)
        store.commit([first(lease, 0.0, "x") for lease in leases[:300]])
        sample = store.sample(1)
        seen = [next(sample).id]
        store.commit([first(lease, 0.0, "x") for lease in leases[300:]])
        seen += [page.id for page in sample]
        assert seen == sorted(set(seen))
        assert len(seen) >= 300

    @pytest.mark.parametrize("one_in", [0, -1, 3, 6, 1000])
    def test_a_share_that_cannot_be_drawn_is_an_error_that_says_so(self, store: Store, one_in: int) -> None:
        with pytest.raises(ValueError, match="power of two"):
            next(store.sample(one_in), None)

    def test_an_empty_store_has_no_sample(self, store: Store) -> None:
        assert list(store.sample(1)) == []
        assert store.live_pages() == 0


class LookupContract(StoreSuite):
    """A store declares its shards and change logs, and finds pages by number and by address prefix."""

    def test_every_store_names_its_shards_and_logs(self, store: Store) -> None:
        assert len(store.shards) == len(store.logs) >= 1
        assert dict(store.away) == {}
        store.check()

    def test_pages_are_looked_up_by_number_and_by_the_beginning_of_their_address(self, store: Store) -> None:
        store.add([*links("a", 3), *links("b", 2)], [], 0.0)
        page = page_of(store, "http://a/1")
        assert store.url_of(page.id) == "http://a/1"
        assert store.url_of(1 << 60) is None
        assert store.urls_like("http://a/", 2) == ["http://a/0", "http://a/1"]
        assert store.urls_like("http://", 9) == [found.url for found in (*links("a", 3), *links("b", 2))]
        assert store.urls_like("http://a/", 0) == []

    def test_the_newest_step_is_that_of_the_last_change(self, store: Store) -> None:
        assert store.newest_seq() == 0
        store.commit([first(lease, 1.0, "text") for lease in leased(store, 3)])
        assert store.newest_seq() == max(change.seq for change in store.changes(0, 9))
