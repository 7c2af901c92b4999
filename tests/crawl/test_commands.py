"""Control commands are executed by the running crawl, or by the next one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from levada.core.commands import AddSeeds, ChangeBudget, ControlCommand, DesiredState, DropSite, Pause, Resume
from levada.core.errors import StoreError
from levada.core.reports import Report
from levada.crawl.commands import desired_state_after
from levada.freshness import LearnedRevisit, PageEstimates, Scale
from tests.crawl.simulated_crawl import DAY, World, page, run_simulated
from tests.in_memory import MemoryCommandQueue

A, B = "http://a.test/", "http://b.test/"
QUICK = "[politeness]\ndelay = 1\n[crawl]\nsitemaps = false\n"


def web(sites: tuple[str, ...] = (A, B), count: int = 40) -> dict[str, object]:
    pages: dict[str, object] = {}
    for site, word in zip(sites, ("page", "leaf"), strict=True):
        pages[site] = page(f"home {word}", *(f"/{n}" for n in range(count)))
        pages |= {f"{site}{n}": page(f"{word} {n}") for n in range(count)}
    return pages


def world(settings: str = QUICK, **more: object) -> tuple[World, MemoryCommandQueue]:
    commands = MemoryCommandQueue()
    return World(web(), settings, commands=commands, **more), commands  # type: ignore[arg-type]


def times(place: World, start: str = "") -> list[float]:
    return [at for at, url in place.asked(start) if not url.endswith("robots.txt")]


@pytest.mark.parametrize(
    ("commands", "left"),
    [
        ([Pause()], DesiredState(paused=True)),
        ([Pause(), Resume()], DesiredState()),
        ([ChangeBudget(10), Pause()], DesiredState(True, 10)),
        ([ChangeBudget(10), ChangeBudget(None)], DesiredState()),
        ([AddSeeds(("http://c.test/",)), DropSite("c.test")], DesiredState()),
    ],
)
def test_what_orders_leave_behind(commands: list[ControlCommand], left: DesiredState) -> None:
    desired_state = DesiredState()
    for command in commands:
        desired_state = desired_state_after(command, desired_state)
    assert desired_state == left


def test_a_pause_stops_fetching_within_a_second_and_a_resume_goes_on() -> None:
    place, commands = world()
    events = {10.0: lambda: commands.submit(Pause()), 60.0: lambda: commands.submit(Resume())}
    report = place.crawl(A, B, meanwhile=events)
    asked = times(place)
    assert [at for at in asked if 11.0 < at < 60.0] == []
    assert [at for at in asked if 60.0 <= at < 61.0] != []
    assert report.new == 82
    assert commands.pending() == []
    assert commands.desired_state() == DesiredState()


def test_what_is_under_way_when_a_pause_comes_is_finished_and_stored() -> None:
    place, commands = world(seconds=5.0)
    run = {8.0: lambda: commands.submit(Pause()), 30.0: lambda: commands.submit(Resume())}
    place.crawl(A, seconds=25.0, meanwhile=run)
    begun = {url for _, url in place.asked() if not url.endswith("robots.txt")}
    assert place.stored() == begun
    assert place.store.stats(place.clock.now()).leased == 0


def test_a_pause_outlives_the_crawl() -> None:
    place, commands = world()
    commands.submit(Pause())
    place.crawl(A, seconds=5.0)
    place.crawl(seconds=5.0)
    assert place.asked() == []
    commands.submit(Resume())
    assert place.crawl().new == 41


def test_a_crawl_that_is_paused_does_not_take_itself_for_done() -> None:
    place, commands = world()
    commands.submit(Pause())
    report = place.crawl(A, meanwhile={300.0: lambda: commands.submit(Resume())})
    assert report.stopped == "done"
    assert report.new == 41


def test_a_budget_takes_effect_without_a_restart() -> None:
    place, commands = world(
        "[politeness]\ndelay = 0\nmax_concurrent = 1\n[crawl]\nsitemaps = false\n[budget]\nper_hour = 36000\n"
    )
    place.crawl(A, B, seconds=60.0, meanwhile={2.0: lambda: commands.submit(ChangeBudget(360))})
    late = [at for at in times(place) if at > 3.0]
    assert len([at for at in times(place) if at <= 2.0]) > 10
    assert 4 <= len(late) <= 6  # one in ten seconds
    assert commands.desired_state() == DesiredState(per_hour=360)


def test_a_budget_changes_the_price_of_a_visit_too() -> None:
    policy = LearnedRevisit(PageEstimates(Scale.between(60.0, DAY)), per_hour=100.0)
    place, commands = world(policy=policy)
    place.crawl(A, seconds=400.0)
    before = policy.price()
    place.crawl(seconds=5.0, meanwhile={1.0: lambda: commands.submit(ChangeBudget(5))})
    assert policy.visits_per_second <= 5 / 3600
    assert policy.price() > before
    place.crawl(seconds=5.0, meanwhile={1.0: lambda: commands.submit(ChangeBudget(1000))})
    assert policy.price() < before


def test_seeds_are_added_with_their_sites() -> None:
    place, commands = world()
    events = {5.0: lambda: commands.submit(AddSeeds((B, "no address at all", "ftp://c.test/")))}
    place.crawl(A, seconds=120.0, meanwhile=events)
    assert min(times(place, B)) < 8.0
    assert len([url for url in place.stored() if url.startswith(B)]) == 41


def test_a_dropped_site_is_left_alone_and_its_pages_stay() -> None:
    place, commands = world()
    place.crawl(A, B, seconds=120.0, meanwhile={10.0: lambda: commands.submit(DropSite("b.test"))})
    assert 8.0 < max(times(place, B)) < 12.0
    stored = [url for url in place.stored() if url.startswith(B)]
    assert 5 <= len(stored) <= 12
    assert len([url for url in place.stored() if url.startswith(A)]) == 41
    place.crawl(seconds=100.0)
    assert max(times(place, B)) < 12.0  # nor does the next crawl visit it


def test_a_dropped_site_can_be_taken_up_again() -> None:
    place, commands = world()
    events: dict[float, Callable[[], object]] = {
        10.0: lambda: commands.submit(DropSite("b.test")),
        50.0: lambda: commands.submit(AddSeeds((B,))),
    }
    place.crawl(A, B, seconds=200.0, meanwhile=events)
    assert [at for at in times(place, B) if 12.0 < at < 50.0] == []
    assert len([url for url in place.stored() if url.startswith(B)]) == 41


def test_a_site_that_nobody_knows_can_be_dropped() -> None:
    place, commands = world()
    commands.submit(DropSite("z.test"))
    assert place.crawl(A).new == 41


def test_orders_that_cannot_be_read_hold_nobody_up_and_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryCommandQueue):
        def pending(self) -> list[tuple[int, ControlCommand]]:
            raise StoreError("orders.db is damaged")

    place = World(web(), QUICK, commands=Broken())  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        assert place.crawl(A).new == 41
    assert [record.message for record in caplog.records] == ["commands wait: orders.db is damaged"]


def test_a_stop_ends_a_paused_crawl() -> None:
    place, commands = world()
    commands.submit(Pause())

    async def run() -> Report:
        crawl = place.make_crawl(once=False)
        asyncio.get_running_loop().call_soon(crawl.stop)
        return await crawl.run()

    assert run_simulated(place.clock, run).stopped == "interrupted"
