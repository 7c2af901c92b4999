"""What a store must keep to be one shard of several: links for other shards, and pages that move."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from levada.core.reasons import Reason
from levada.core.records import ChangeHint, FoundUrl, Lease, PageState, Refusal, Signals, SiteRecord
from levada.store.base import Shard, StoreLimits
from levada.testing.store.visits import changed, first, gone, links, unchanged, visited
from tests.contracts.conftest import OpenShard
from tests.sharded import everything


@pytest.fixture
def source(open_shard: OpenShard) -> Shard:
    return open_shard(StoreLimits())


@pytest.fixture
def target(open_shard: OpenShard) -> Shard:
    return open_shard(StoreLimits(shard=5))


def move(source: Shard, target: Shard, *urls: str) -> list[int]:
    pages = source.fence(urls)
    ids = [each.page.id for each in pages]
    target.import_pages(pages)
    source.let_go(ids)
    target.unfence(ids)
    return ids


def leased(shard: Shard, url: str, now: float) -> Lease:
    return next(lease for lease in shard.lease(now, 100, 60.0) if lease.page.url == url)


def test_links_to_other_shards_wait_in_the_outbox_of_the_visit(source: Shard) -> None:
    source.add(links("a", 1), [], 0.0)
    (lease,) = source.lease(0.0, 1, 60.0)
    end = replace(first(lease, 7.0, "x", tuple(links("a", 1, start=9))), elsewhere=tuple(links("b", 3)))
    assert source.commit([end]) == [True]
    waiting = source.undelivered(10)
    assert [(each.found, each.found_on, each.at) for each in waiting] == [
        (found, lease.page.id, 7.0) for found in links("b", 3)
    ]
    assert source.undelivered(2) == waiting[:2]
    assert source.page("http://b/0") is None
    source.delivered([waiting[0].id, waiting[2].id])
    assert source.undelivered(10) == [waiting[1]]


def test_a_visit_under_an_old_lease_leaves_nothing_in_the_outbox(source: Shard) -> None:
    source.add(links("a", 1), [], 0.0)
    (old,) = source.lease(0.0, 1, 60.0)
    source.lease(60.0, 1, 60.0)
    assert source.commit([replace(first(old, 61.0, "x"), elsewhere=tuple(links("b", 3)))]) == [False]
    assert source.undelivered(10) == []


def test_what_is_received_is_held_with_where_it_was_found_and_once(source: Shard, target: Shard) -> None:
    lease = visited(source, "http://a/", "a", "x", 0.0)
    (again,) = source.lease(60.0, 1, 60.0)
    source.commit([replace(unchanged(again, 61.0), elsewhere=(FoundUrl("http://b/", "b", depth=2, admit=True),))])
    waiting = source.undelivered(10)
    assert (target.receive(waiting), target.receive(waiting)) == (1, 0)
    page = target.page("http://b/")
    assert page is not None
    assert (page.found_on, page.found_at, page.depth) == (lease.page.id, 61.0, 2)
    site = target.site("b")
    assert site is not None
    assert site.admitted


def test_no_two_shards_give_a_page_or_a_lease_the_same_number(source: Shard, target: Shard) -> None:
    numbers, tokens = [], []
    for shard in (source, target):
        shard.add([*links("a", 3), *links("b", 3)], [], 0.0)
        shard.save(SiteRecord("saved"))
        shard.add(links("saved", 1), [], 0.0)
        leases = shard.lease(0.0, 10, 60.0)
        numbers += [lease.page.id for lease in leases]
        tokens += [lease.token for lease in leases]
    assert len(set(numbers)) == len(set(tokens)) == 14


def test_the_turns_that_have_come_are_told_in_order(source: Shard) -> None:
    source.add(links("a", 5), [], 3.0)
    source.add(links("b", 5), [], 1.0)
    source.add(links("c", 5), [], 9.0)
    assert source.waiting(5.0, 10) == [(1.0, 0), (3.0, 0)]
    assert source.waiting(5.0, 1) == [(1.0, 0)]
    source.lease(5.0, 1, 60.0)
    assert sorted(taken for _, taken in source.waiting(5.0, 10)) == [0, 1]


def test_the_next_change_comes_after_the_step_of_another_shard(source: Shard) -> None:
    source.follow_seq(40)
    visited(source, "http://a/", "a", "x", 0.0)
    (change,) = source.changes(0, 10)
    assert change.seq == source.newest_seq() == 41
    source.follow_seq(7)
    visited(source, "http://a/2", "a", "y", 0.0)
    assert source.newest_seq() == 42


def test_a_page_moves_with_all_that_is_known_of_it(source: Shard, target: Shard) -> None:
    source.save(SiteRecord("a", admitted=True, delay=0.5))
    visited(source, "http://a/", "a", "one", 0.0)
    source.commit([replace(changed(leased(source, "http://a/", 60.0), 60.0, "two"), memory=b"remembered")])
    source.add([FoundUrl("http://a/old", "a")], [], 61.0)
    copy = unchanged(leased(source, "http://a/old", 70.0), 70.0)
    source.commit([replace(copy, state=PageState.ELSEWHERE, leads_to="http://a/")])
    source.add(links("a", 2), [], 71.0)
    before = everything([source])
    move(source, target, *before)
    assert everything([source, target]) == before
    assert everything([source]) == {}
    assert target.stats(0.0).states == {"elsewhere": 1, "live": 1, "new": 2}
    assert source.stats(0.0).known == source.stats(0.0).sites == 0
    site = target.site("a")
    assert site is not None
    assert (site.pages, site.admitted, site.delay) == (4, True, 0.5)


def test_what_happened_to_a_page_stays_in_the_log_of_the_shard_where_it_happened(source: Shard, target: Shard) -> None:
    visited(source, "http://a/", "a", "one", 0.0)
    source.commit([changed(leased(source, "http://a/", 60.0), 60.0, "two")])
    told = [("http://a/", "a", 1), ("http://a/", "a", 2)]
    assert [(each.url, each.site, each.version) for each in source.change_log(0, 10)] == told
    move(source, target, "http://a/")
    assert [(each.url, each.site, each.version) for each in source.change_log(0, 10)] == told
    assert target.change_log(0, 10) == []
    target.commit([changed(leased(target, "http://a/", 120.0), 120.0, "three")])
    assert [(each.url, each.version) for each in target.change_log(0, 10)] == [("http://a/", 3)]
    move(target, source, "http://a/")
    assert [(each.url, each.site, each.version) for each in source.change_log(0, 10)] == told
    assert [(each.url, each.version) for each in target.change_log(0, 10)] == [("http://a/", 3)]


def test_a_page_that_somebody_has_leased_does_not_move(source: Shard, target: Shard) -> None:
    source.add(links("a", 2), [], 0.0)
    (lease,) = source.lease(0.0, 1, 60.0)
    assert len(source.fence(["http://a/0", "http://a/1"])) == 1
    assert source.commit([first(lease, 1.0, "x")]) == [True]


def test_a_fenced_page_can_be_read_but_nobody_gets_it(source: Shard) -> None:
    visited(source, "http://a/", "a", "x", 0.0)
    (packed,) = source.fence(["http://a/"])
    assert source.page("http://a/") == packed.page
    assert source.document("http://a/") is not None
    assert source.lease(1e6, 10, 60.0) == []
    source.forget_leases()
    assert source.lease(1e6, 10, 60.0) == []
    source.bring_forward([(packed.page, Signals.SITEMAP, 1.0)])
    assert source.page("http://a/") == packed.page
    assert source.fenced() == [(packed.page.id, "http://a/")]
    assert source.fence(["http://a/"]) == [packed]
    source.unfence([packed.page.id])
    assert source.fenced() == []
    assert len(source.lease(1e6, 10, 60.0)) == 1


def test_every_step_of_a_move_may_be_repeated(source: Shard, target: Shard) -> None:
    visited(source, "http://a/", "a", "x", 0.0)
    source.add(links("a", 1), [], 1.0)
    before = everything([source])
    pages = source.fence(list(before))
    assert source.fence(list(before)) == pages
    ids = [each.page.id for each in pages]
    target.import_pages(pages)
    target.import_pages(pages)
    source.let_go(ids)
    source.let_go(ids)
    assert [id for id, _ in target.fenced()] == sorted(ids)
    target.unfence(ids)
    target.unfence(ids)
    assert everything([source, target]) == before
    assert target.stats(2.0).versions == 1
    assert len(target.lease(1e6, 10, 60.0)) == 2


def test_only_fenced_pages_are_let_go(source: Shard) -> None:
    lease = visited(source, "http://a/", "a", "x", 0.0)
    source.let_go([lease.page.id])
    assert source.page("http://a/") is not None


def test_the_order_of_changes_tells_both_shards_of_a_move(source: Shard, target: Shard) -> None:
    visited(source, "http://a/", "a", "one", 0.0)
    source.commit([changed(leased(source, "http://a/", 60.0), 60.0, "two")])
    position = source.newest_seq()
    move(source, target, "http://a/")
    (left,) = source.changes(position, 10)
    assert (left.url, left.site, left.document) == ("http://a/", "a", None)
    assert source.newest_seq() == left.seq
    (came,) = target.changes(0, 10)
    assert came.document is not None
    assert (came.document.text, came.arrived, came.page_id) == ("two", 2, left.page_id)


def test_a_page_may_come_back(source: Shard, target: Shard) -> None:
    visited(source, "http://a/", "a", "one", 0.0)
    before = everything([source])
    position = source.newest_seq()
    move(source, target, "http://a/")
    move(target, source, "http://a/")
    assert everything([source, target]) == before
    (back,) = source.changes(position, 10)
    assert back.document is not None
    (left,) = target.changes(0, 10)
    assert left.document is None


def test_a_number_is_not_given_again_when_its_page_has_moved(source: Shard, target: Shard) -> None:
    source.add([*links("a", 3), *links("b", 2)], [], 0.0)
    ids = set(move(source, target, "http://a/2", "http://b/0", "http://b/1"))
    source.add([*links("a", 3, start=3), *links("b", 2, start=2)], [], 1.0)
    target.add([*links("a", 2, start=8), *links("b", 2, start=8)], [], 1.0)
    numbers = [id for shard in (source, target) for id, _ in shard.urls_after(0, 100)]
    assert len(numbers) == len(set(numbers)) == 14
    assert ids < set(numbers)


def test_what_a_site_refused_is_still_counted_when_its_last_page_has_moved(source: Shard, target: Shard) -> None:
    source.add(links("a", 1), [Refusal("http://a/x", "a", Reason.ROBOTS)], 0.0)
    move(source, target, "http://a/0")
    assert source.site("a") is None
    assert source.stats(0.0).refused == {"robots": 1}


def test_a_page_that_is_gone_stays_gone_where_it_moves_to(source: Shard, target: Shard) -> None:
    visited(source, "http://a/", "a", "one", 0.0)
    source.commit([gone(leased(source, "http://a/", 60.0), 60.0, next_visit=120.0)])
    move(source, target, "http://a/")
    assert (target.live_pages(), target.stats(60.0).versions) == (0, 1)
    assert [each.document for each in target.changes(0, 10)] == [None]
    target.commit([unchanged(leased(target, "http://a/", 120.0), 120.0)])
    assert target.live_pages() == 1
    assert target.outdated([ChangeHint("http://a/", 500.0, Signals.FEED)]) != []


def test_all_pages_can_be_walked_over(source: Shard) -> None:
    source.add([*links("a", 5), *links("b", 5)], [], 0.0)
    walked: list[tuple[int, str]] = []
    while some := source.urls_after(walked[-1][0] if walked else 0, 3):
        walked += some
    assert {url for _, url in walked} == {found.url for found in [*links("a", 5), *links("b", 5)]}
