"""The stages of a running crawl are sized by the controllers that the simulator runs."""

from __future__ import annotations

import asyncio
import logging
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import StoreError, UsageError
from levada.core.reports import Round
from levada.core.settings import StagesSettings, convert_settings, parse_settings
from levada.core.site_rules.pace import SitePaces
from levada.crawl.politeness import PolitenessQueue
from levada.scale.autoscaler import Autoscaler, Stage, stage_rule
from levada.scale.pools import FetchSlots, InProcess
from levada.scale.statistics import InProcessStatistics
from levada.stages import Chain, StageSample, feed_forward
from tests.crawl.simulated_crawl import World, page
from tests.crawl.test_politeness import lease
from tests.manual_clock import ManualClock

PERIOD = 0.25


class Bench:
    """Workers on paper: they do what comes at a known pace, and have as many hands as they are told."""

    def __init__(self, service: float, *, on: int = 0, most: int = 50, capacity: float = math.inf) -> None:
        self.service = service
        self.on = on
        self.most = most
        self.queue = 0.0
        self.arrived = self.done = self.work = 0.0
        self.told: list[int] = []
        self.says: InProcessStatistics | Exception | None = None
        self._capacity = capacity

    def pass_time(self, jobs: float, seconds: float = PERIOD) -> None:
        self.arrived += jobs
        self.queue += jobs
        done = min(self.queue, self.on * seconds / self.service)
        self.queue -= done
        self.done += done
        self.work += done * self.service

    def poll(self) -> InProcessStatistics:
        if isinstance(self.says, Exception):
            raise self.says
        busy = min(self.on, math.ceil(self.queue))
        return self.says or InProcessStatistics(
            queue=self.queue,
            on=self.on,
            busy=busy,
            arrived=self.arrived,
            done=self.done,
            work=self.work,
            capacity=self._capacity,
        )

    def resize(self, wanted: int) -> None:
        self.told.append(wanted)
        self.on = wanted


def staffed(*benches: Bench, idle: float = 0.0, budget: int | None = None) -> tuple[Autoscaler, ManualClock]:
    clock = ManualClock(1000.0)
    stages = [
        Stage(f"stage{n}", InProcess(bench), feed_forward(0, bench.most, PERIOD, patience=0.0), idle)
        for n, bench in enumerate(benches)
    ]
    return Autoscaler(stages, clock, budget=budget), clock


def pass_time(autoscaler: Autoscaler, clock: ManualClock, seconds: float, rate: float, *benches: Bench) -> None:
    async def rounds() -> None:
        for _ in range(round(seconds / PERIOD)):
            for bench in benches:
                bench.pass_time(rate * PERIOD)
            await autoscaler.round()
            clock.advance(PERIOD)

    asyncio.run(rounds())


def step(autoscaler: Autoscaler, paused: bool = False) -> Round:
    return asyncio.run(autoscaler.round(paused))


def test_a_stage_grows_to_the_load_and_shrinks_after_it() -> None:
    bench = Bench(0.1)
    autoscaler, clock = staffed(bench)
    pass_time(autoscaler, clock, 20, 100, bench)
    assert 10 <= bench.on <= 16
    pass_time(autoscaler, clock, 30, 10, bench)
    assert 1 <= bench.on <= 4
    assert bench.queue < 10
    pass_time(autoscaler, clock, 60, 0, bench)
    assert bench.on == 0


def test_the_decision_is_the_chains_own() -> None:
    bench = Bench(0.1, on=3)
    autoscaler, _ = staffed(bench)
    bench.pass_time(25)
    pool = bench.poll()
    chain = Chain([feed_forward(0, bench.most, PERIOD, patience=0.0)])
    sample = StageSample(at=1000.0, queue=pool.queue, on=3, busy=pool.busy, arrived=pool.arrived, done=pool.done)
    wanted = tuple(stage.wanted for stage in step(autoscaler).stages)
    assert wanted == chain.decide([sample]).wanted == (bench.told[0],)


def test_whoever_looks_sees_queue_busy_wanted_and_why() -> None:
    bench = Bench(0.1)
    autoscaler, clock = staffed(bench)
    pass_time(autoscaler, clock, 10, 50, bench)
    (view,) = autoscaler.views
    assert (view.name, view.wanted, view.queue) == ("stage0", bench.on, int(bench.queue))
    assert "/s arrive" in view.why
    (summary,) = asyncio.run(autoscaler.summary())
    assert summary.least == 0
    assert summary.most == max(bench.told)
    assert summary.jobs == int(bench.done)
    assert summary.decisions >= 1


def test_the_last_worker_stays_for_a_while_after_its_last_job() -> None:
    bench = Bench(0.001, on=1)
    autoscaler, clock = staffed(bench, idle=10.0)
    pass_time(autoscaler, clock, 5, 4, bench)
    pass_time(autoscaler, clock, 9, 0, bench)
    assert bench.on == 1
    assert autoscaler.views[0].why.endswith("; one stays a while")
    pass_time(autoscaler, clock, 3, 0, bench)
    assert bench.on == 0


def test_a_budget_holds_over_all_stages() -> None:
    first, second = Bench(0.1), Bench(0.1)
    autoscaler, clock = staffed(first, second, budget=8, idle=10.0)
    for _ in range(80):
        pass_time(autoscaler, clock, PERIOD, 100, first, second)
        assert first.on + second.on <= 8
    assert "8 for all stages" in autoscaler.views[0].why


def test_a_queue_that_fills_up_holds_the_source_until_it_is_short_again() -> None:
    bench = Bench(1.0, most=2, capacity=100)
    autoscaler, clock = staffed(bench)
    pass_time(autoscaler, clock, 10, 20, bench)
    assert autoscaler.hold_source
    pass_time(autoscaler, clock, 90, 0, bench)
    assert not autoscaler.hold_source


NONSENSE = [
    InProcessStatistics(queue=math.nan, on=3, busy=1),
    InProcessStatistics(queue=-1, on=3, busy=1),
    InProcessStatistics(queue=0, on=3, busy=1, arrived=math.inf),
    InProcessStatistics(queue=0, on=3, busy=1, work=math.nan),
    InProcessStatistics(queue=0, on=3, busy=1, done=-5),
    StoreError("nobody there"),
]


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_changes_nothing_and_is_logged_once(
    nonsense: InProcessStatistics | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(0.1)
    autoscaler, clock = staffed(bench)
    pass_time(autoscaler, clock, 10, 30, bench)
    size, told = bench.on, len(bench.told)
    bench.says = nonsense
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            step(autoscaler)
            clock.advance(PERIOD)
    assert bench.on == size
    assert len({record.message for record in caplog.records}) == len(caplog.records) <= 2
    assert len(caplog.records) >= 1
    assert set(bench.told[told:]) <= {size}
    bench.says = None
    pass_time(autoscaler, clock, 20, 30, bench)
    assert 2 <= bench.on <= 8


def test_a_first_look_that_makes_no_sense_leaves_the_size_alone() -> None:
    bench = Bench(0.1, on=7)
    bench.says = InProcessStatistics(queue=math.nan, on=7, busy=0)
    autoscaler, _ = staffed(bench)
    step(autoscaler)
    assert bench.on == 7
    assert bench.told == []


def test_after_first_counts_that_make_no_sense_a_stage_is_scaled_as_ever() -> None:
    bench = Bench(0.1)
    bench.says = InProcessStatistics(queue=0, on=0, busy=0, arrived=math.inf)
    autoscaler, clock = staffed(bench)
    step(autoscaler)
    bench.says = None
    clock.advance(PERIOD)
    pass_time(autoscaler, clock, 20, 100, bench)
    assert 10 <= bench.on <= 16


def test_a_clock_that_jumps_is_no_stampede() -> None:
    bench = Bench(0.1)
    autoscaler, clock = staffed(bench)
    pass_time(autoscaler, clock, 10, 30, bench)
    size = bench.on
    for jump in (86_400.0, -3600.0):
        clock._now += jump
        step(autoscaler)
        assert bench.on == size
        pass_time(autoscaler, clock, 5, 30, bench)
        assert 1 <= bench.on <= 10


def test_silence_during_a_pause_is_no_news() -> None:
    bench = Bench(0.1)
    autoscaler, clock = staffed(bench)
    pass_time(autoscaler, clock, 20, 40, bench)
    rate = autoscaler._chain.controllers[0].rate
    for _ in range(80):
        step(autoscaler, paused=True)
        clock.advance(PERIOD)
    assert autoscaler._chain.controllers[0].rate == pytest.approx(rate, rel=0.3)


@given(
    st.lists(st.floats(0, 500), min_size=1, max_size=30),
    st.floats(0.001, 1.0),
    st.integers(1, 20),
    st.integers(0, 20),
)
def test_a_stage_stays_within_its_limits_whatever_comes(rates: list[float], service: float, most: int, on: int) -> None:
    bench = Bench(service, on=on, most=most)
    autoscaler, clock = staffed(bench, idle=1.0)
    for rate in rates:
        pass_time(autoscaler, clock, PERIOD, rate, bench)
    assert all(0 <= told <= most for told in bench.told)


# Slots


def test_slots_are_told_apart_from_what_waits_for_something_else() -> None:
    clock = ManualClock()
    slots = FetchSlots(3, clock, 1.0, lambda: 5)
    slots.begin()
    clock.advance(2.0)
    slots.begin()
    clock.advance(1.0)
    assert (slots.poll().queue, slots.poll().busy, slots.poll().work) == (0, 2, 4.0)
    slots.begin()
    assert slots.poll().queue == 5
    slots.resize(1)
    assert not slots.free
    for _ in range(3):
        slots.end()
    assert slots.free
    pool = slots.poll()
    assert (pool.on, pool.busy, pool.arrived, pool.done) == (1, 0, 3, 3)


def test_there_is_always_a_slot_and_never_more_than_the_settings_allow() -> None:
    slots = FetchSlots(8, ManualClock(), 1.0, lambda: 0)
    slots.resize(0)
    assert slots.limit == 1
    slots.resize(100)
    assert slots.limit == 8


@given(
    st.lists(st.integers(0, 4), max_size=20),
    st.integers(1, 4),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0, 3600]),
)
def test_what_waits_for_a_slot_is_what_would_start_if_there_were_one(
    sites: list[int], at_once: int, delay: float, per_hour: int
) -> None:
    politeness_queue = PolitenessQueue(SitePaces(delay=delay), at_once, per_hour=per_hour)
    for number, site in enumerate(sites):
        politeness_queue.put(lease(number, f"{site}.test"))
    expected = politeness_queue.startable(100.0)
    started = 0
    while politeness_queue.take(100.0) is not None:
        started += 1
    assert started == (min(expected, 1) if per_hour else expected)
    assert politeness_queue.startable(100.0) == 0


# Rules and settings


@pytest.mark.parametrize("stage", ["fetch", "parse", "index", "count", "render"])
@pytest.mark.parametrize("controller", ["static", "linear", "drain-time", "hpa", "keda", "ds2", "feed-forward"])
def test_every_controller_can_size_every_stage(stage: str, controller: str) -> None:
    settings = convert_settings({"stages": {"controller": controller}}, "a test").stages
    rule = stage_rule(stage, settings, 64)
    assert rule.least <= 4
    assert rule.most == 64


def test_a_least_above_the_most_is_one_clear_error() -> None:
    with pytest.raises(UsageError, match="least <= most"):
        stage_rule("parse", StagesSettings(min_parse=3), 2)
    with pytest.raises(UsageError, match=r"min_parse <= parse\.children"):
        parse_settings("[parse]\nchildren = 2\n[stages]\nmin_parse = 3", "a test")
    with pytest.raises(UsageError, match="budget"):
        parse_settings("[stages]\nbudget = 2", "a test")
    with pytest.raises(UsageError, match="controller"):
        parse_settings("[stages]\ncontroller = 'magic'", "a test")


# In a crawl


def test_a_crawl_whose_slots_are_sized_visits_every_page_once() -> None:
    web = {"http://a.test/": page("home", *(f"/{n}" for n in range(60)))}
    web |= {f"http://a.test/{n}": page(f"page {n}") for n in range(60)}
    world = World(
        web, "[politeness]\ndelay = 0\nmax_concurrent = 30\n[stages]\nmin_fetch = 1", seconds=0.5, stage_pools=()
    )
    report = world.crawl("http://a.test/")
    assert report.new == 61
    assert len(world.asked("http://a.test/")) - 2 == 61  # robots.txt and the sitemap that is not there
    (fetch,) = report.stages
    assert fetch.name == "fetch"
    assert fetch.jobs >= 61
    assert fetch.most >= 16


def test_a_source_that_is_held_leases_nothing_until_the_queue_is_short() -> None:
    web = {"http://a.test/": page("home", *(f"/{n}" for n in range(30)))}
    web |= {f"http://a.test/{n}": page(f"page {n}") for n in range(30)}
    bench = Bench(0.1, on=1, most=1)
    bench.says = InProcessStatistics(queue=100, on=1, busy=1, capacity=100)
    stage = Stage("parse", InProcess(bench), feed_forward(0, 1, PERIOD))
    world = World(web, "[politeness]\ndelay = 0\n[crawl]\nsitemaps = false", stage_pools=[stage])

    def empty() -> None:
        bench.says = None

    report = world.crawl("http://a.test/", meanwhile={30.0: empty})
    held = [at for at, _ in world.asked() if 1.0 < at < 30.0]
    assert held == []
    assert report.new == 31


def test_a_worker_that_cannot_be_started_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    class Nowhere(Bench):
        def resize(self, wanted: int) -> None:
            raise OSError("no more processes")

    bench = Nowhere(0.1)
    autoscaler, clock = staffed(bench)
    with caplog.at_level(logging.WARNING):
        pass_time(autoscaler, clock, 5, 10, bench)
    assert [record.message for record in caplog.records] == ["stage stage0 keeps its size: no more processes"]
