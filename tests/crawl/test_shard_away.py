"""A crawl over shards of which one is away for a while: it goes on, and in the end nothing is missing or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from levada.core.commands import AddSeeds
from levada.core.errors import StoreAway
from levada.core.reasons import Reason
from levada.sharding.page_keys import page_placement
from levada.store.base import Shard, StoreLimits
from levada.store.memory import MemoryStore
from levada.store.sharded import ShardedStore, ShardPlan
from levada.store.sqlite import SqliteStore
from tests.crawl.simulated_crawl import World, page
from tests.in_memory import FixedPlan, MemoryCommandQueue

SHARDS = 3
SITES = [f"http://site-{number}.org/" for number in range(9)]
WEB = {
    **{site: page(site, *(f"{site}{number}" for number in range(4)), *SITES) for site in SITES},
    **{
        f"{site}{number}": page(f"{site}{number}", *(f"{other}{number}" for other in SITES))
        for site in SITES
        for number in range(4)
    },
}


class Away:
    """A store that is away between two moments of the crawl."""

    def __init__(self, path: Path, number: int) -> None:
        self.store = SqliteStore(path, limits=StoreLimits(shard=number))
        self.is_down = False
        self.calls_left = -1  # before it goes down; negative: it stays

    def __getattr__(self, name: str) -> Any:
        if name not in ("capabilities", "close"):
            self.calls_left -= 1
            if self.calls_left == 0:
                self.is_down = True
            if self.is_down:
                raise StoreAway("the server is away")
        return getattr(self.store, name)


class Shards:
    def __init__(self, folder: Path) -> None:
        self.parts = [Away(folder / f"{number}.db", number) for number in range(SHARDS)]
        self.plan = ShardPlan(page_placement("site", SHARDS))
        self.open()

    def open(self) -> None:
        """As the next start of the crawl does."""
        self.store = ShardedStore(cast("list[Shard]", self.parts), FixedPlan(self.plan))
        self.store.deliver()
        self.store.forget_leases()

    def close(self) -> None:
        for part in self.parts:
            part.store.close()


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[Shards]:
    with closing(Shards(tmp_path)) as made:
        yield made


def world_over(shards: Shards, **named: Any) -> World:
    return World(WEB, store=cast(MemoryStore, shards.store), **named)


@pytest.mark.parametrize("calls", range(6, 80, 7))
def test_a_shard_may_go_away_at_any_moment_of_a_crawl(shards: Shards, calls: int) -> None:
    world = world_over(shards)
    shards.parts[1].calls_left = calls
    world.crawl(*SITES)
    stored = {document.url for number in (0, 2) for document in shards.parts[number].store.scan()}
    assert stored == {url for url in WEB if shards.plan.home(url) != 1}
    assert shards.parts[1].is_down
    shards.parts[1].is_down = False
    shards.open()
    world.store = cast(MemoryStore, shards.store)
    world.crawl()
    assert sorted(document.url for document in shards.store.scan()) == sorted(WEB)
    assert {len(shards.store.versions(url)) for url in WEB} == {1}
    assert [part.store.undelivered(1) for part in shards.parts] == [[], [], []]
    pages = [shards.store.page(url) for url in WEB]
    assert not any(each is None or each.reason is Reason.INTERNAL for each in pages)


def test_commands_wait_for_the_shard_that_they_are_about(shards: Shards) -> None:
    commands = MemoryCommandQueue()
    world = world_over(shards, commands=commands)
    world.crawl(*SITES)
    there = next(site for site in SITES if shards.plan.home(site) == 1)
    shards.parts[1].is_down = True
    commands.submit(AddSeeds((f"{there}new",)))
    world.crawl()
    assert len(commands.pending()) == 1
    shards.parts[1].is_down = False
    world.crawl()
    assert commands.pending() == []
    assert shards.store.page(f"{there}new") is not None
