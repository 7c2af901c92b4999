"""Contract of forgetting: pages, sites and versions that are deleted for good, and do not come back."""

from __future__ import annotations

from typing import cast

import pytest
from msgspec.structs import replace

from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, FoundUrl, PageState, PageText, Refusal, SiteRecord
from levada.pages.urls import NearDuplicateRuns
from levada.store.base import Capability, Deleted, Forgetting, Retention, StoreLimits
from levada.testing.store.visits import (
    OpenStore,
    StoreSuite,
    changed,
    first,
    gone,
    leased,
    links,
    page_of,
    unchanged,
    visit,
    visited,
)

_DAY = 86_400.0


def forget(store: Forgetting, *urls: str, sites: tuple[str, ...] = ()) -> Deleted:
    """Forget pages and sites, as `levada forget` does."""
    store.bury(urls, sites, 1.0)
    named = [*urls, *(url for site in sites for url in store.urls_like(f"http://{site}/", 100))]
    erased = store.erase(named)
    after: int | None = 0
    while after is not None:
        after = store.erase_traces(after, 2)
    return erased


class ForgettingContract(StoreSuite):
    """What a store with `Capability.FORGET` must keep.

    ```python
    class TestMyStore(StoreContract, ForgettingContract):
        def make(self, folder: Path, limits: StoreLimits) -> Store:
            return MyStore(folder / "pages.db", limits)
    ```
    """

    @pytest.fixture
    def forgetful(self, open_store: OpenStore) -> Forgetting:
        store = open_store(StoreLimits())
        assert Capability.FORGET in store.capabilities
        return cast("Forgetting", store)

    def test_a_forgotten_page_is_gone_with_its_versions_and_its_place_in_the_log(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        visit(forgetful, 60.0, changed, "two")
        visited(forgetful, "http://b/", "b", "other", 61.0)
        assert forget(forgetful, "http://a/") == Deleted(1, 2)
        assert forgetful.page("http://a/") is None
        assert forgetful.document("http://a/") is None
        assert forgetful.versions("http://a/") == []
        assert [each.url for each in forgetful.change_log(0, 9)] == ["http://b/"]
        assert [document.url for document in forgetful.scan()] == ["http://b/"]
        stats = forgetful.stats(100.0)
        assert (stats.known, stats.stored, stats.versions) == (1, 1, 1)

    def test_followers_learn_of_it_by_the_number_of_the_page_alone(self, forgetful: Forgetting) -> None:
        lease = visited(forgetful, "http://a/", "a", "one", 0.0)
        before = forgetful.newest_seq()
        forget(forgetful, "http://a/")
        (change,) = forgetful.changes(before, 9)
        assert (change.page_id, change.url, change.site, change.document) == (lease.page.id, "", "", None)
        assert change.seq == forgetful.newest_seq()
        assert forgetful.changes(0, 9) == [change]

    def test_forgetting_twice_changes_nothing_more(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        forget(forgetful, "http://a/")
        before = forgetful.stats(1.0), forgetful.newest_seq(), forgetful.tombstones()
        assert forget(forgetful, "http://a/", "http://nowhere/") == Deleted()
        after = forgetful.stats(1.0), forgetful.newest_seq()
        assert after == before[:2]

    def test_no_link_brings_a_forgotten_page_back(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        forget(forgetful, "http://a/")
        assert forgetful.add([FoundUrl("http://a/", "a"), FoundUrl("http://a/other", "a")], [], 5.0) == 1
        assert forgetful.page("http://a/") is None
        (lease,) = forgetful.lease(5.0, 9, 60.0)
        redirect = FoundUrl("http://a/", "a", how=DiscoveredBy.REDIRECT, admit=True)
        assert forgetful.commit([first(lease, 5.0, "x", (redirect,))]) == [True]
        assert forgetful.page("http://a/") is None
        assert forgetful.stats(5.0).refused == {"forgotten": 2}

    def test_a_refusal_of_a_forgotten_page_does_not_name_it(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        forgetful.add([], [Refusal("http://a/secret", "a", Reason.DEPTH)], 1.0)
        forget(forgetful, "http://a/secret")
        forgetful.add([FoundUrl("http://a/secret", "a")], [Refusal("http://a/secret", "a", Reason.ROBOTS)], 2.0)
        site = forgetful.site("a")
        assert site is not None
        assert {(reason, example) for reason, _, example in site.refused} == {
            (Reason.DEPTH, ""),
            (Reason.FORGOTTEN, ""),
            (Reason.ROBOTS, ""),
        }

    def test_a_visit_under_way_of_a_forgotten_page_commits_nothing(self, forgetful: Forgetting) -> None:
        (lease,) = leased(forgetful)
        forget(forgetful, lease.page.url)
        assert forgetful.commit([first(lease, 1.0, "late", tuple(links("b", 2)))]) == [False]
        forgetful.release([lease])
        assert forgetful.page(lease.page.url) is None
        assert forgetful.page("http://b/0") is None
        assert forgetful.lease(9e9, 9, 60.0) == []

    def test_a_page_that_led_to_a_forgotten_one_leads_nowhere(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        visited(forgetful, "http://b/", "b", "two", 1.0)
        lease = next(each for each in forgetful.lease(100.0, 9, 60.0) if each.page.url == "http://b/")
        moved = replace(unchanged(lease, 100.0), state=PageState.ELSEWHERE, leads_to="http://a/")
        forgetful.commit([moved])
        forget(forgetful, "http://a/")
        assert page_of(forgetful, "http://b/").leads_to is None
        again = next(each for each in forgetful.lease(1000.0, 9, 60.0) if each.page.url == "http://b/")
        forgetful.commit([replace(unchanged(again, 1000.0), state=PageState.ELSEWHERE, leads_to="http://a/")])
        assert page_of(forgetful, "http://b/").leads_to is None

    def test_where_a_forgotten_page_linked_to_is_no_longer_known(self, forgetful: Forgetting) -> None:
        forgetful.add(links("a", 1), [], 0.0)
        (lease,) = forgetful.lease(0.0, 1, 60.0)
        forgetful.commit([first(lease, 0.0, "x", tuple(links("a", 1, start=1)))])
        assert page_of(forgetful, "http://a/1").found_on == lease.page.id
        forget(forgetful, "http://a/0")
        assert page_of(forgetful, "http://a/1").found_on is None

    def test_a_forgotten_site_is_unknown_and_stays_away(self, forgetful: Forgetting) -> None:
        forgetful.save(SiteRecord("a", admitted=True))
        visited(forgetful, "http://a/", "a", "one", 0.0)
        forgetful.add([*links("a", 3), *links("b", 1)], [Refusal("http://a/x", "a", Reason.DEPTH)], 0.0)
        assert forget(forgetful, sites=("a",)).pages == 4
        assert forgetful.site("a") is None
        assert [site.site for site in forgetful.sites()] == ["b"]
        forgetful.save(SiteRecord("a", failures=1))
        forgetful.add([*links("a", 9), FoundUrl("http://a/new", "a", how=DiscoveredBy.SITEMAP)], [], 1.0)
        assert forgetful.site("a") is None
        assert forgetful.stats(1.0).sites == 1
        assert forgetful.stats(1.0).refused == {"depth": 1, "forgotten": 10}

    def test_naming_it_as_a_start_takes_it_up_again(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        visited(forgetful, "http://a/more", "a", "two", 1.0)
        forget(forgetful, sites=("a",))
        start = FoundUrl("http://a/", "a", how=DiscoveredBy.SEED, admit=True)
        assert forgetful.forgotten(["http://a/", "http://a/more", "http://b/"]) == {"http://a/", "http://a/more"}
        assert forgetful.add([start], [], 5.0) == 1
        assert forgetful.forgotten(["http://a/", "http://a/more"]) == set()
        lease = visit(forgetful, 5.0, first, "again")
        assert lease.page.url == "http://a/"
        site = forgetful.site("a")
        assert site is not None
        assert site.admitted

    def test_a_start_takes_up_its_own_page_only(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        visited(forgetful, "http://a/more", "a", "two", 1.0)
        forget(forgetful, "http://a/", "http://a/more")
        forgetful.add([FoundUrl("http://a/", "a", how=DiscoveredBy.SEED, admit=True)], [], 5.0)
        assert forgetful.forgotten(["http://a/", "http://a/more"]) == {"http://a/more"}

    def test_no_shard_keeps_a_sketch_of_its_text_or_finds_a_page_by_it(self, forgetful: Forgetting) -> None:
        """A site has its near-duplicate runs on every shard where it has pages."""
        runs = NearDuplicateRuns()
        runs.observe("http://a/0", b"s" * 128, 0)
        texts = {}
        forgetful.add(links("a", 6), [], 0.0)
        for step in range(6):
            (lease,) = forgetful.lease(step * 2.0, 1, 30.0)
            texts[lease.page.url] = f"digest {step}".encode()
            result = first(lease, step * 2.0, "x", interval=9e9, text_digest=texts[lease.page.url])
            forgetful.commit([replace(result, near_runs=runs.packed())])
        assert forgetful.near_runs(["a"]) == {"a": runs.packed()}
        asked = [PageText("a", digest) for digest in texts.values()]
        assert forgetful.originals(asked) == list(texts)
        forget(forgetful, next(iter(texts)))
        assert all(shard.near_runs(["a"]) == {} for shard in forgetful.shards)
        assert forgetful.originals(asked) == [None, *list(texts)[1:]]

    def test_a_number_of_a_forgotten_page_is_not_used_again(self, forgetful: Forgetting) -> None:
        lease = visited(forgetful, "http://a/", "a", "one", 0.0)
        forget(forgetful, "http://a/")
        assert visited(forgetful, "http://a/other", "a", "two", 100.0).page.id != lease.page.id

    def test_tombstones_hold_no_name_and_another_store_can_take_them(
        self, forgetful: Forgetting, open_store: OpenStore
    ) -> None:
        forget(forgetful, "http://a/", sites=("b",))
        key, tombstones = forgetful.tombstones()
        assert len(bytes.fromhex(key)) == 16
        assert [at for _, at in tombstones] == [1.0, 1.0]
        other = cast("Forgetting", open_store(StoreLimits()))
        other.adopt_tombstones(key, tombstones)
        assert other.forgotten(["http://a/", "http://b/any", "http://c/"]) == {"http://a/", "http://b/any"}

    def test_only_pages_that_are_gone_are_erased_on_request(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        visited(forgetful, "http://b/", "b", "two", 1.0)
        visit(forgetful, 60.0, gone)
        assert forgetful.erase(["http://a/", "http://b/"], only_gone=True) == Deleted(1, 1)
        assert forgetful.forgotten(["http://a/", "http://b/"]) == set()

    def test_versions_beyond_a_number_or_an_age_are_dropped_and_the_newest_stays(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        for step, text in enumerate(["two", "three", "four"], start=1):
            visit(forgetful, step * 60.0, changed, text)
        assert self._thinned(forgetful, 1000.0, Retention(versions=3), dry_run=True) == (Deleted(1, 1), [])
        assert self._thinned(forgetful, 1000.0, Retention(versions=3)) == (Deleted(1, 1), [])
        assert self._thinned(forgetful, 1000.0, Retention(seconds=100.0), site="b") == (Deleted(), [])
        assert self._thinned(forgetful, 1000.0, Retention(seconds=850.0)) == (Deleted(1, 2), [])
        assert [each.version for each in forgetful.versions("http://a/")] == [4]
        assert self._thinned(forgetful, 1000.0, Retention(seconds=1.0, versions=1, thin=True)) == (Deleted(), [])
        assert forgetful.stats(0.0).versions == 1

    def test_a_gone_page_is_told_once_its_newest_version_is_too_old(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        visit(forgetful, 60.0, gone)
        assert self._thinned(forgetful, 100.0, Retention(seconds=101.0)) == (Deleted(), [])
        assert self._thinned(forgetful, 100.0, Retention(seconds=99.0)) == (Deleted(), ["http://a/"])

    def test_versions_that_are_too_old_go_when_a_new_one_is_stored(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(keep_seconds=100.0, keep_versions=3))
        visited(store, "http://a/", "a", "one", 0.0)
        for at, text in [(60.0, "two"), (120.0, "three"), (180.0, "four"), (240.0, "five")]:
            visit(store, at, changed, text)
        assert [each.fetched_at for each in store.versions("http://a/")] == [240.0, 180.0]
        assert store.stats(0.0).versions == 2

    def test_old_versions_are_thinned_when_a_new_one_is_stored(self, open_store: OpenStore) -> None:
        store = open_store(StoreLimits(thin=True, keep_versions=100))
        visited(store, "http://a/", "a", "first", 0.0)
        for hour in range(6, 96, 6):
            visit(store, hour * 3600.0, changed, f"hour {hour}")
        kept = [each.fetched_at / 3600.0 for each in store.versions("http://a/")]
        assert kept == [90.0, 84.0, 78.0, 72.0, 66.0, 60.0, 42.0, 18.0]

    def test_compacting_leaves_everything_as_it_is(self, forgetful: Forgetting) -> None:
        visited(forgetful, "http://a/", "a", "one", 0.0)
        visited(forgetful, "http://b/", "b", "two", 1.0)
        forget(forgetful, "http://a/")
        before = forgetful.stats(9.0), list(forgetful.scan()), forgetful.changes(0, 9)
        forgetful.compact()
        assert (replace(forgetful.stats(9.0), bytes=before[0].bytes), *before[1:]) == (
            before[0],
            list(forgetful.scan()),
            forgetful.changes(0, 9),
        )

    def _thinned(
        self, store: Forgetting, now: float, rules: Retention, *, site: str = "", dry_run: bool = False
    ) -> tuple[Deleted, list[str]]:
        deleted = Deleted()
        expired: list[str] = []
        after: int | None = 0
        while after is not None:
            after, some, urls = store.thin_out(after, 1, now, rules, site=site, dry_run=dry_run)
            deleted, expired = deleted + some, expired + urls
        return deleted, expired
