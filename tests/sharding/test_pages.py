"""Placement of the pages of Levada's own store."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.pages.urls import site_of
from levada.sharding.page_keys import (
    KEYS,
    keeps_sites_whole,
    page_placement,
    page_values,
    search_filter,
    site_filter,
    site_of_url,
)
from levada.sharding.placement import Placement, ShardKey, quantile_ranges

hosts = st.from_regex(r"[a-z]{1,8}(\.[a-z]{2,5}){0,2}(:8\d{3})?", fullmatch=True)
paths = st.from_regex(r"/([a-z0-9.-]{0,6}/){0,3}[a-z]{0,5}(\?q=[a-z/]{0,4})?", fullmatch=True)
urls = st.builds(
    lambda scheme, host, path: f"{scheme}://{host}{path}", st.sampled_from(["http", "https"]), hosts, paths
)


@given(urls)
def test_the_site_is_that_of_the_crawl(url: str) -> None:
    assert site_of_url(url) == site_of(url) == page_values(url)["site"]


@pytest.mark.parametrize(
    ("url", "section"),
    [
        ("http://a.org/", "a.org/"),
        ("http://a.org/news/today?x=1/2", "a.org/news"),
        ("http://a.org/news?x=1", "a.org/news"),
        ("http://a.org:8080/b", "a.org:8080/b"),
        ("http://a.org", "a.org/"),
        ("not an address", "/"),
        ("", "/"),
    ],
)
def test_the_section_is_the_site_and_the_first_part_of_the_path(url: str, section: str) -> None:
    assert page_values(url)["section"] == section


@given(urls, st.integers(1, 9), st.sampled_from(sorted(KEYS)))
def test_whoever_looks_for_a_page_or_its_site_looks_at_its_shard(url: str, shards: int, key: str) -> None:
    placement = page_placement(key, shards, b"secret")
    place = placement.place(page_values(url))
    assert 0 <= place < shards
    assert place in placement.shards_for(site_filter([page_values(url)["site"]]))
    assert place in placement.shards_for(search_filter([[page_values(url)["site"], "other"]]))
    assert place in placement.shards_for(search_filter([]))


@settings(max_examples=30)
@given(st.lists(urls, min_size=1, max_size=8), st.integers(1, 9))
def test_by_site_all_pages_of_a_site_live_together(some: list[str], shards: int) -> None:
    placement = page_placement("site", shards)
    places = {(page_values(url)["site"], placement.place(page_values(url))) for url in some}
    assert len(places) == len({site for site, _ in places})
    for site, place in places:
        assert placement.shards_for(site_filter([site])) == {place}


def test_only_a_key_that_hashes_the_site_and_cuts_nothing_else_keeps_sites_whole() -> None:
    assert keeps_sites_whole(page_placement("site", 5))
    assert not keeps_sites_whole(page_placement("url", 5))
    assert not keeps_sites_whole(page_placement("section", 5))
    assert keeps_sites_whole(page_placement("url", 1))
    key: ShardKey = page_placement("site", 2).key
    pages = [page_values(f"http://a.org/{number}") for number in range(10)]
    assert not keeps_sites_whole(Placement(key, quantile_ranges(map(key.encode, pages), 2), 2))


def test_by_address_pages_are_spread_evenly_and_by_another_secret_otherwise() -> None:
    pages = [page_values(f"http://a.org/{number}") for number in range(4_000)]
    one, other = (page_placement("url", 4, secret) for secret in (b"one", b"other"))
    counts = Counter(map(one.place, pages))
    assert max(counts.values()) < 1.15 * min(counts.values())
    assert 0.2 < sum(one.place(page) == other.place(page) for page in pages) / len(pages) < 0.3
