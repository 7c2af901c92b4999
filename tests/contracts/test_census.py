"""The law of the `Census` port."""

from __future__ import annotations

from itertools import pairwise

import pytest

from levada.adapters.limits import StoreLimits
from levada.hashing import drawn
from levada.records import PageState
from tests.contracts.conftest import OpenStore
from tests.visits import Store, failed, first, gone, links, unchanged


@pytest.fixture
def crawled(store: Store) -> Store:
    """Of every three pages one is stored, one failed and one was stored and is gone; some are new."""
    for site in "abc":
        store.add(links(site, 300), [], 0.0)
    leases = store.lease(0.0, 900, 60.0)
    store.settle([failed(each, 0.0) if each.page.id % 3 == 0 else first(each, 0.0, "text") for each in leases])
    leases = store.lease(60.0, 900, 60.0)
    store.settle([gone(each, 60.0) for each in leases if each.page.id % 3 == 1])
    store.add(links("d", 20), [], 60.0)
    return store


@pytest.mark.parametrize("one_in", [1, 2, 8, 64, 1 << 20, 1 << 40])
def test_a_sample_is_exactly_the_pages_drawn_that_have_a_document(crawled: Store, one_in: int) -> None:
    there = [document.page_id for document in crawled.scan() if drawn(document.page_id, one_in)]
    sample = list(crawled.sample(one_in))
    assert [page.id for page in sample] == there
    assert all(page == crawled.page(page.url) for page in sample)


def test_a_sample_of_one_in_twice_as_many_is_part_of_it(crawled: Store) -> None:
    samples = [{page.id for page in crawled.sample(1 << power)} for power in range(8)]
    assert all(smaller <= larger for larger, smaller in pairwise(samples))
    assert len(samples[0]) == crawled.live_pages() == crawled.standing(0.0).stored > 256


def test_a_page_that_is_gone_is_no_longer_counted_and_one_that_is_back_is(store: Store) -> None:
    store.add(links("a", 1), [], 0.0)
    for step, (end, held) in enumerate([("stored", 1), ("gone", 0), ("failed", 0), ("back", 1)]):
        now = step * 60.0
        (lease,) = store.lease(now, 1, 30.0)
        ends = {
            "stored": first(lease, now, "x"),
            "gone": gone(lease, now, next_visit=now + 60.0),
            "failed": failed(lease, now),
            "back": unchanged(lease, now),
        }
        store.settle([ends[end]])
        assert store.live_pages() == len(list(store.sample(1))) == held
    page = store.page("http://a/0")
    assert page is not None
    assert page.state is PageState.LIVE


def test_a_store_may_be_written_while_it_is_sampled(open_store: OpenStore) -> None:
    store = open_store(StoreLimits())
    store.add(links("a", 400), [], 0.0)
    leases = store.lease(0.0, 400, 60.0)
    store.settle([first(lease, 0.0, "x") for lease in leases[:300]])
    sample = store.sample(1)
    seen = [next(sample).id]
    store.settle([first(lease, 0.0, "x") for lease in leases[300:]])
    seen += [page.id for page in sample]
    assert seen == sorted(set(seen))
    assert len(seen) >= 300


@pytest.mark.parametrize("one_in", [0, -1, 3, 6, 1000])
def test_a_share_that_cannot_be_drawn_is_an_error_that_says_so(store: Store, one_in: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        next(store.sample(one_in), None)


def test_of_nothing_there_is_no_sample(store: Store) -> None:
    assert list(store.sample(1)) == []
    assert store.live_pages() == 0
