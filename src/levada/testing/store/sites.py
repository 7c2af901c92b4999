"""Contract of sites in a store, of the page sample, and of lookups."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
from msgspec.structs import replace

from levada.core.hashing import drawn
from levada.core.reasons import Reason
from levada.core.records import FoundUrl, PageState, Refusal, RobotsRecord, SiteRecord
from levada.store.base import Store
from levada.testing.store.visits import (
    StoreSuite,
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


class SiteContract(StoreSuite):
    """The store keeps the robots rules, delay and backoff of a site, and counts its pages itself."""

    def test_a_site_is_known_as_soon_as_a_page_of_it_is_held(self, store: Store) -> None:
        store.add(links("a", 2), [], 0.0)
        assert store.site("a") == SiteRecord("a", pages=2)
        assert store.site("b") is None

    def test_what_is_saved_is_given_back(self, store: Store) -> None:
        robots = (
            ("http", RobotsRecord("User-agent: *\nDisallow: /x", 1.0, 2.0)),
            ("https", RobotsRecord("", 3.0, 4.0, trouble=Reason.HTTP_5XX)),
        )
        record = SiteRecord("a", admitted=True, failures=3, rest_until=9.5, delay=1.5, robots=robots)
        store.save(record)
        assert store.site("a") == record
        store.save(replace(record, delay=None, robots=robots[:1], failures=0))
        assert store.site("a") == replace(record, delay=None, robots=robots[:1], failures=0)

    def test_counts_are_the_stores_own(self, store: Store) -> None:
        store.add(links("a", 2), [Refusal("http://a/x", "a", Reason.ROBOTS)], 0.0)
        store.save(SiteRecord("a", pages=99, refused=((Reason.DEPTH, 7, "no"),)))
        assert store.site("a") == SiteRecord("a", pages=2, refused=((Reason.ROBOTS, 1, "http://a/x"),))

    def test_a_site_is_admitted_by_a_start_url(self, store: Store) -> None:
        store.add([FoundUrl("http://a/1", "a"), FoundUrl("http://b/1", "b", admit=True)], [], 0.0)
        assert {site.site: site.admitted for site in store.sites()} == {"a": False, "b": True}
        store.add([FoundUrl("http://a/1", "a", admit=True)], [], 0.0)
        assert {site.site: site.admitted for site in store.sites()} == {"a": True, "b": True}
        store.add([FoundUrl("http://a/2", "a")], [], 0.0)
        assert {site.site: site.admitted for site in store.sites()} == {"a": True, "b": True}

    def test_all_sites_are_listed(self, store: Store) -> None:
        store.add([FoundUrl(f"http://s{n}/", f"s{n}") for n in range(500)], [], 0.0)
        assert sorted(site.site for site in store.sites()) == sorted(f"s{n}" for n in range(500))

    def test_saving_a_site_that_is_not_known_makes_it_known(self, store: Store) -> None:
        store.save(SiteRecord("a", admitted=True))
        assert store.stats(0.0).sites == 1
        assert store.site("a") == SiteRecord("a", admitted=True)
        assert store.lease(0.0, 10, 60.0) == []


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
