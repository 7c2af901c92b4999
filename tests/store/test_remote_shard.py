"""A shard that does not answer: it holds up only its own pages, and is taken up again by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from levada.core.errors import StoreAway, StoreDamaged
from levada.core.records import FoundUrl, SiteRecord
from levada.follow.feed import Feed
from levada.sharding.page_keys import page_placement
from levada.store.base import Shard, StoreLimits
from levada.store.sharded import ShardedStore, ShardPlan
from levada.store.sharded.plan import PlanFile, ShardPlace, new_record
from levada.store.sharded.remote import RemoteShard
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import changed, first, links
from tests.in_memory import FixedPlan

SHARDS = 3
WAIT = 30.0  # for another thread: whoever waits so long has lost
URLS = [f"http://site-{number}.org/" for number in range(30)]


class Server:
    """A store that hangs, or is away, when it is told to."""

    def __init__(self, path: Path, number: int) -> None:
        self.number = number
        self.answers = threading.Event()
        self.answers.set()
        self.asked = threading.Event()  # while it hangs
        self.is_down = False
        self.store = SqliteStore(path, limits=StoreLimits(shard=number))

    def __getattr__(self, name: str) -> Any:
        if self.is_down:
            raise StoreAway("the server is away")
        if not self.answers.is_set():
            self.asked.set()
            assert self.answers.wait(WAIT)
        return getattr(self.store, name)

    def hang(self) -> None:
        self.asked.clear()
        self.answers.clear()


class Servers:
    """A collection on three servers."""

    def __init__(self, folder: Path, key: str = "site") -> None:
        self.servers = [Server(folder / f"{number}.db", number) for number in range(SHARDS)]
        self.shards = [
            RemoteShard(
                each.number,
                f"server {each.number}",
                lambda limits, each=each: cast(Shard, each),  # type: ignore[misc]
                StoreLimits(shard=each.number),
                seconds=WAIT,
                probe_seconds=0.02,
            )
            for each in self.servers
        ]
        self.plan = ShardPlan(page_placement(key, SHARDS))
        self.store = ShardedStore(cast("list[Shard]", self.shards), FixedPlan(self.plan))

    def hang(self, number: int) -> None:
        """From now on this one does not answer; only for it nobody waits long."""
        self.shards[number]._seconds = 0.2
        self.servers[number].hang()

    def go_on(self, number: int) -> None:
        self.servers[number].answers.set()
        until(lambda: not self.store.away)
        self.shards[number]._seconds = WAIT

    def of(self, number: int) -> list[str]:
        return [url for url in URLS if self.plan.home(url) == number]

    def close(self) -> None:
        for server in self.servers:
            server.is_down = False
            server.answers.set()
        self.store.close()


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Servers]:
    with closing(Servers(tmp_path)) as made:
        made.store.add([FoundUrl(url, url[7:-1], admit=True) for url in URLS], [], 0.0)
        yield made


def until(is_so: Callable[[], bool]) -> None:
    waited = threading.Event()
    for _ in range(int(WAIT / 0.01)):
        if is_so():
            return
        waited.wait(0.01)
    raise AssertionError("it never came to that")


def hanging(three: Servers, number: int) -> None:
    """Shard `number` hangs, and that is known."""
    three.hang(number)
    with pytest.raises(StoreAway, match=f"shard {number} cannot be reached: server {number} has not answered"):
        three.store.page(three.of(number)[0])
    assert set(three.store.away) == {number}


def test_the_shards_that_answer_go_on(three: Servers) -> None:
    hanging(three, 1)
    others = three.of(0) + three.of(2)
    leases = three.store.lease(1.0, 100, 60.0)
    assert sorted(lease.page.url for lease in leases) == sorted(others)
    assert all(three.store.commit([first(lease, 2.0, f"text {lease.page.url}") for lease in leases]))
    assert three.store.stats(2.0).stored == len(others)
    assert all(three.store.document(url) is not None for url in others)
    assert {record.site for record in three.store.sites()} == {url[7:-1] for url in others}
    with pytest.raises(StoreAway, match="shard 1"):
        three.store.document(three.of(1)[0])
    with pytest.raises(StoreAway, match="shard 1"):
        list(three.store.scan())


def test_all_shards_away_is_an_error(three: Servers) -> None:
    for server in three.servers:
        server.is_down = True
    for ask in (lambda: three.store.lease(1.0, 9, 60.0), lambda: three.store.stats(1.0)):
        with pytest.raises(StoreAway, match="the server is away"):
            ask()
    assert set(three.store.away) == {0, 1, 2}


def test_a_shard_that_answers_late_is_back_at_once(three: Servers) -> None:
    hanging(three, 2)
    three.go_on(2)
    assert three.store.page(three.of(2)[0]) is not None


def test_a_shard_that_was_away_is_found_by_a_probe(three: Servers) -> None:
    three.servers[0].is_down = True
    with pytest.raises(StoreAway, match="the server is away"):
        three.store.page(three.of(0)[0])
    since = three.store.away[0].since
    with pytest.raises(StoreAway):
        three.store.page(three.of(0)[0])
    assert three.store.away[0].since == since
    three.servers[0].is_down = False
    until(lambda: not three.store.away)
    assert three.store.page(three.of(0)[0]) is not None


def test_an_error_of_the_store_is_not_an_absence(tmp_path: Path) -> None:
    def damaged(limits: StoreLimits) -> Shard:
        raise StoreDamaged("no tables")

    shard = RemoteShard(0, "server", damaged, StoreLimits())
    for _ in range(2):
        with pytest.raises(StoreDamaged, match="no tables"):
            shard.ask(lambda each: each.newest_seq())
    assert shard.away is None
    shard.close()


def test_links_for_a_shard_that_is_away_wait_and_are_delivered_when_it_is_back(three: Servers) -> None:
    leases = [lease for lease in three.store.lease(1.0, 100, 60.0) if three.plan.home(lease.page.url) == 0]
    hanging(three, 1)
    found = tuple(FoundUrl(f"{url}new", url[7:-1]) for url in URLS)
    assert all(three.store.commit([first(lease, 2.0, lease.page.url, found) for lease in leases]))
    there = [each.url for each in found if three.plan.home(each.url) != 1]
    assert all(three.store.page(url) is not None for url in there)
    three.go_on(1)
    three.store.deliver()
    assert all(three.store.page(each.url) is not None for each in found)
    assert [server.store.undelivered(9) for server in three.servers] == [[], [], []]


def test_more_waiting_links_than_are_read_at_once_hold_up_no_other_link(
    three: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("levada.store.sharded.combining._AT_ONCE", 3)
    leases = [lease for lease in three.store.lease(1.0, 100, 60.0) if three.plan.home(lease.page.url) == 0]
    hanging(three, 1)
    waiting = tuple(FoundUrl(f"{three.of(1)[0]}{number}", three.of(1)[0][7:-1]) for number in range(10))
    other = FoundUrl(f"{three.of(2)[0]}new", three.of(2)[0][7:-1])
    assert three.store.commit([first(leases[0], 2.0, "text", (*waiting, other))]) == [True]
    assert three.store.page(other.url) is not None
    three.go_on(1)
    three.store.deliver()
    assert all(three.store.page(each.url) is not None for each in waiting)


def test_visits_that_were_under_way_are_stored_once(three: Servers) -> None:
    """Whether the commit that nobody waited for came through or not."""
    leases = {lease.page.url: lease for lease in three.store.lease(1.0, 100, 60.0)}
    url = three.of(1)[0]
    three.hang(1)
    visits = [first(lease, 2.0, f"text {each}") for each, lease in leases.items()]
    assert three.store.commit(visits) == [three.plan.home(each) != 1 for each in leases]
    three.go_on(1)
    again = [lease for lease in three.store.lease(100.0, 100, 60.0) if not lease.page.visits]
    three.store.commit([first(lease, 101.0, f"text {lease.page.url}") for lease in again])
    assert [len(three.store.versions(each)) for each in URLS] == [1] * len(URLS)
    page = three.store.page(url)
    assert page is not None
    assert page.visits == 1


def test_pages_that_were_leased_too_late_are_given_back(three: Servers) -> None:
    three.hang(1)
    assert all(three.plan.home(lease.page.url) != 1 for lease in three.store.lease(1.0, 100, 1e9))
    three.go_on(1)
    until(lambda: len(three.store.lease(2.0, 100, 1e9)) == len(three.of(1)))


def test_a_write_that_goes_on_keeps_the_plan_steady(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    file, mover = PlanFile(tmp_path / "placement.json"), PlanFile(tmp_path / "placement.json")
    places = tuple(ShardPlace(f"shard-{number}") for number in range(SHARDS))
    mover.replace(new_record(servers.plan, places))
    store = ShardedStore(cast("list[Shard]", servers.shards), file)
    url = servers.of(1)[0]
    servers.hang(1)
    with pytest.raises(StoreAway):
        store.add([FoundUrl(url, url[7:-1])], [], 0.0)
    replaced = threading.Event()

    def replace_plan() -> None:
        mover.replace(new_record(ShardPlan(servers.plan.current, page_placement("url", SHARDS)), places))
        assert servers.servers[1].store.page(url) is not None, "the write came after the plan was replaced"
        replaced.set()

    moving = threading.Thread(target=replace_plan)
    moving.start()
    assert not replaced.wait(0.2)
    servers.servers[1].answers.set()
    assert replaced.wait(WAIT)
    moving.join()
    servers.close()
    for each in (file, mover):
        each.close()


def test_the_feed_is_read_without_the_shard_and_misses_nothing(three: Servers) -> None:
    leases = three.store.lease(1.0, 100, 60.0)
    three.store.commit([first(lease, 2.0, f"text {lease.page.url}") for lease in leases])
    hanging(three, 1)
    page = Feed(three.store.logs).read((), 1_000)
    assert {change.url for _, change in page.changes} == set(three.of(0) + three.of(2))
    assert len(Feed(three.store.logs).read_back(page.after, 1_000).changes) == len(page.changes)
    three.go_on(1)
    rest = Feed(three.store.logs).read(page.after, 1_000)
    assert {change.url for _, change in rest.changes} == set(three.of(1))


def test_a_site_on_several_shards_is_known_without_one_of_them(tmp_path: Path) -> None:
    with closing(Servers(tmp_path, "url")) as three:
        three.store.add(links("a.org", 30), [], 0.0)
        three.store.save(SiteRecord("a.org", admitted=True, delay=2.0))
        three.servers[0].is_down = True
        record = three.store.site("a.org")
        assert record is not None
        assert record.delay == 2.0
        three.store.save(replace(record, delay=3.0))
        assert [page.url for page in three.store.outdated([])] == []


def test_a_page_that_changes_is_leased_and_stored_after_the_outage(three: Servers) -> None:
    three.store.commit([first(lease, 2.0, "old") for lease in three.store.lease(1.0, 100, 60.0)])
    hanging(three, 0)
    three.go_on(0)
    due = three.store.lease(1e9, 100, 60.0)
    assert len(due) == len(URLS)
    assert all(three.store.commit([changed(lease, 1e9, "new") for lease in due]))
