"""Each change once, for every reader and however often it is killed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.errors import BadQuery, UsageError
from levada.core.records import ChangeEvent, ChangeKind, ChangeSelection
from levada.follow.feed import Feed, filter_of, place_of
from levada.store.memory import MemoryStore
from levada.testing.store.visits import changed, first, gone, links


def shards(pages: list[int], rounds: int) -> list[MemoryStore]:
    stores = []
    for number, count in enumerate(pages):
        store = MemoryStore()
        store.add(links(f"s{number}.example", count), [], 0.0)
        for lease in store.lease(0.0, count, 60.0):
            store.commit([first(lease, 1.0, f"text of {lease.page.id}")])
        for step in range(1, rounds + 1):
            for lease in store.lease(step * 100.0, count, 60.0):
                store.commit([changed(lease, step * 100.0, f"other {step} of {lease.page.id}")])
        stores.append(store)
    return stores


@given(st.lists(st.integers(0, 6), min_size=1, max_size=3), st.integers(0, 3), st.lists(st.integers(1, 7)), st.data())
@settings(max_examples=40, deadline=None)
def test_every_change_comes_exactly_once_whatever_is_read_at_a_time(
    pages: list[int], rounds: int, limits: list[int], data: st.DataObject
) -> None:
    feed = Feed(shards(pages, rounds))
    place, seen = feed.start(), []
    for limit in [*limits, 1000]:
        page = feed.read(place, limit)
        if data.draw(st.booleans()):  # killed before it noted where it is: it asks again
            page = feed.read(place, limit)
        seen += [(shard, change.seq) for shard, change in page.changes]
        place = page.after
    expected = {(shard, seq) for shard, count in enumerate(pages) for seq in range(1, count * (rounds + 1) + 1)}
    assert len(seen) == len(set(seen))
    assert set(seen) == expected
    assert feed.read(place, 10).changes == []
    assert feed.newest() == place


def test_a_filter_moves_on_past_what_it_leaves_out() -> None:
    feed = Feed(shards([3, 2], 1))
    page = feed.read(feed.start(), 100, ChangeSelection(site="s1.example"))
    assert {change.site for _, change in page.changes} == {"s1.example"}
    assert page.after == feed.newest()


@pytest.mark.parametrize(
    ("site", "is_met"),
    [
        ("boun.localhost", True),
        ("Boun.LOCALHOST:8401", True),
        ("localhost", True),
        ("www.boun.localhost:8401", True),
        ("boun.localhost:8402", False),
        ("oun.localhost", False),
    ],
)
def test_a_site_is_named_as_in_a_search_with_or_without_its_port(site: str, is_met: bool) -> None:
    store = MemoryStore()
    store.add(links("www.boun.localhost:8401", 1), [], 0.0)
    store.commit([first(lease, 1.0, "text") for lease in store.lease(0.0, 1, 60.0)])
    assert bool(Feed([store]).read((0,), 10, filter_of(site, "", 0.0)).changes) is is_met


@pytest.mark.parametrize(
    ("site", "words", "says"),
    [
        ("http://a.example/", "", "'http://a.example/' is not a host name"),
        ("a b", "", "'a b' is not a host name"),
        ("", '"', "no word in"),
        ("", "\N{FERRY}", "no word in"),
        ("a.example", " ", "no word in"),
    ],
)
def test_a_filter_that_could_only_be_a_mistake_is_refused(site: str, words: str, says: str) -> None:
    with pytest.raises(BadQuery, match=says):
        filter_of(site, words, 0.0)


def test_words_must_all_stand_on_the_page_folded() -> None:
    store = MemoryStore()
    store.add(links("a", 2), [], 0.0)
    one, two = store.lease(0.0, 2, 60.0)
    store.commit([first(one, 1.0, "Vapur İskelesi kapalı"), first(two, 1.0, "vapur")])
    page = Feed([store]).read((0,), 10, ChangeSelection(words="iskelesi VAPUR"))
    assert [change.page_id for _, change in page.changes] == [one.page.id]


def test_small_changes_can_be_left_out_but_news_and_losses_cannot() -> None:
    store = MemoryStore()
    store.add(links("a", 1), [], 0.0)
    (lease,) = store.lease(0.0, 1, 60.0)
    store.commit([first(lease, 1.0, "one")])
    (lease,) = store.lease(100.0, 1, 60.0)
    store.commit([changed(lease, 100.0, "two")])
    (lease,) = store.lease(200.0, 1, 60.0)
    store.commit([gone(lease, 200.0)])
    everything = Feed([store]).read((0,), 10).changes
    share = 1.0 - everything[1][1].similarity
    wanted = Feed([store]).read((0,), 10, ChangeSelection(least=min(1.0, share + 1e-9)))
    met = [change.what for _, change in wanted.changes]
    assert met == [ChangeKind.NEW, ChangeKind.GONE] if share < 1.0 else met == [each.what for _, each in everything]


def test_a_place_with_other_shards_than_there_are_is_read_as_far_as_it_goes() -> None:
    feed = Feed(shards([2, 2], 0))
    assert [shard for shard, _ in feed.read((2,), 10).changes] == [1, 1]
    assert feed.read((2, 2, 9), 10).changes == []


@pytest.mark.parametrize("typed", ["x", "1.", "-1", "1..2", "9" * 30, "1." * 2000, "٣x", " 1"])
def test_what_is_no_place_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match="no place"):
        place_of(typed)


def test_a_place_is_read_back() -> None:
    assert place_of("") == (0,)
    assert place_of("12.7.40") == (12, 7, 40)


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=3),
    st.integers(0, 3),
    st.lists(st.integers(1, 7), min_size=1),
    st.integers(1, 9),
)
@settings(max_examples=40, deadline=None)
def test_reading_back_gives_every_change_once_and_never_a_newer_one(
    pages: list[int], rounds: int, limits: list[int], look: int
) -> None:
    feed = Feed(shards(pages, rounds))
    place, found = feed.newest(), list[tuple[int, ChangeEvent]]()
    more = bool(sum(pages))
    while more:
        page = feed.read_back(place, limits[len(found) % len(limits)], look=look)
        assert feed.read(page.after, 1000).changes != []  # what was shown follows the place
        found += page.changes
        place, more = page.after, page.more
    expected = {(shard, seq) for shard, count in enumerate(pages) for seq in range(1, count * (rounds + 1) + 1)}
    assert len(found) == len(expected)
    assert {(shard, change.seq) for shard, change in found} == expected
    assert [change.at for _, change in found] == sorted((change.at for _, change in found), reverse=True)


def test_reading_back_ends_at_a_time_and_leaves_out_what_is_not_wanted() -> None:
    feed = Feed(shards([3, 2], 3))
    page = feed.read_back(feed.newest(), 100, ChangeSelection(site="s1.example"), since=200.0)
    assert [(change.site, change.at) for _, change in page.changes] == [("s1.example", 300.0)] * 2 + [
        ("s1.example", 200.0)
    ] * 2
    assert not page.more


def test_reading_back_from_a_place_that_was_never_reached_begins_at_the_end() -> None:
    feed = Feed(shards([2], 1))
    assert feed.read_back((2**62,), 100) == feed.read_back(feed.newest(), 100)


def test_a_look_at_few_entries_says_where_to_go_on() -> None:
    feed = Feed(shards([3], 2))
    page = feed.read_back(feed.newest(), 100, ChangeSelection(kinds=(ChangeKind.NEW,)), look=4)
    assert (page.changes, page.more) == ([], True)
    rest = feed.read_back(page.after, 100, ChangeSelection(kinds=(ChangeKind.NEW,)))
    assert (len(rest.changes), rest.more) == (3, False)
