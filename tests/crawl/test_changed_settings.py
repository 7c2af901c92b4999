"""A running crawl goes on with changed settings at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from levada.core.reasons import Reason
from levada.core.records import PageState
from levada.core.settings import Settings
from levada.crawl.executor import StoreExecutor
from tests.crawl.simulated_crawl import World, failing, page, status, text

SITE = "http://a.example"


class Changing:
    """The settings of a running crawl, which a test changes."""

    def __init__(self, world: World) -> None:
        self.now = self.told = world.settings
        self.seen: list[tuple[Settings, Settings]] = []

    def poll(self) -> Settings | None:
        if self.now is self.told:
            return None
        self.told = self.now
        return self.now

    async def settings_changed(self, before: Settings, now: Settings, executor: StoreExecutor) -> None:
        self.seen.append((before, now))

    def to(self, values: dict[str, Any]) -> Callable[[], None]:
        def change() -> None:
            self.now = self.now.replace(values)

        return change


def world_of(pages: int, settings: str) -> tuple[World, Changing]:
    web = {f"{SITE}/": page("Front", *(f"/{number}" for number in range(pages)))}
    web |= {f"{SITE}/{number}": page(f"Page {number}", words=text(f"{number}")) for number in range(pages)}
    world = World(web, f"[crawl]\nsitemaps = false\n{settings}")
    world.live = changing = Changing(world)
    return world, changing


def gaps(world: World, start: float, end: float) -> list[float]:
    return [later - earlier for earlier, later in pairwise(at for at, _ in world.asked() if start <= at <= end)]


@pytest.mark.parametrize(("first", "second"), [(1.0, 10.0), (10.0, 1.0)])
def test_a_changed_delay_holds_from_the_next_request_on(first: float, second: float) -> None:
    world, changing = world_of(100, f"[politeness]\ndelay = {first}\n")
    world.crawl(f"{SITE}/", seconds=200.0, meanwhile={95.0: changing.to({"politeness.delay": second})})
    assert min(gaps(world, 0.0, 95.0)) >= first
    afterwards = gaps(world, 97.0, 200.0)
    assert min(afterwards) >= second - 0.01
    assert max(afterwards) <= second + 1.0
    ((before, now),) = changing.seen
    assert (before.politeness.delay, now.politeness.delay) == (first, second)


def test_a_changed_budget_of_a_site_and_in_all_holds_at_once() -> None:
    world, changing = world_of(200, "[politeness]\ndelay = 0\n[budget]\nper_site_per_hour = 360\n")
    world.crawl(
        f"{SITE}/",
        seconds=500.0,
        meanwhile={
            100.0: changing.to({"budget.per_site_per_hour": 720}),
            300.0: changing.to({"budget.per_hour": 180, "budget.per_site_per_hour": 0}),
        },
    )
    assert min(gaps(world, 12.0, 100.0)) >= 9.9
    assert 4.9 <= min(gaps(world, 102.0, 300.0)) <= 5.1
    assert min(gaps(world, 302.0, 500.0)) >= 19.9


def test_a_lower_depth_refuses_the_links_that_are_found_next() -> None:
    web = {f"{SITE}/": page("Front", "/1")}
    web |= {f"{SITE}/{n}": page(f"Page {n}", f"/{n + 1}", words=text(f"{n}")) for n in range(1, 50)}
    world = World(web, "[crawl]\nsitemaps = false\nmax_depth = 50\n[politeness]\ndelay = 10\n")
    world.live = changing = Changing(world)
    world.crawl(f"{SITE}/", seconds=400.0, meanwhile={55.0: changing.to({"crawl.max_depth": 3})})
    assert len(world.stored()) < 10
    refused = {reason for _, reason in world.store._refused}
    assert refused == {Reason.DEPTH}


def test_a_guard_that_is_changed_asks_again_for_the_robots_txt_that_it_refused() -> None:
    world, changing = world_of(3, "[politeness]\ndelay = 1\n[revisit]\nfirst = 20\nfloor = 1\ngone = 20\nretry = 20\n")
    robots = f"{SITE}/robots.txt"
    world.web.script(robots, failing(Reason.ADDRESS))

    def allow() -> None:
        world.web.script(robots, status(404))
        changing.to({"guard.allow": ["127.0.0.1:80"]})()

    world.crawl(f"{SITE}/", seconds=100.0, meanwhile={30.0: allow})
    assert world.page(f"{SITE}/").state is PageState.LIVE
