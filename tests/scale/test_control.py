"""The autoscaler on queues and pools that a test makes up."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence

import pytest

from levada.core.errors import BrokerAway, LevadaError
from levada.core.reports import Round
from levada.scale.autoscaler import Autoscaler, Stage
from levada.scale.pools import FetchSlots, InProcess
from levada.scale.sampler import StageSampler
from levada.scale.statistics import JobStatistics, PoolStatistics, QueueStatistics
from levada.stages import feed_forward
from tests.manual_clock import ManualClock

Look = QueueStatistics | None | BrokerAway


class MadeUpQueues:
    def __init__(self) -> None:
        self.looks: list[Look] = [QueueStatistics(0, 1)]

    async def poll(self, names: Sequence[str]) -> list[QueueStatistics | None]:
        found: list[QueueStatistics | None] = []
        for look in self.looks:
            if isinstance(look, BrokerAway):
                raise look
            found.append(look)
        return found


class MadeUpPool:
    def __init__(self) -> None:
        self.on = 1
        self.told: list[int] = []
        self.trouble = ""

    async def poll(self) -> PoolStatistics:
        if self.trouble:
            raise LevadaError(self.trouble)
        return PoolStatistics(self.on)

    async def resize(self, wanted: int) -> None:
        self.told.append(wanted)
        self.on = wanted

    async def close(self) -> None: ...


class Bench:
    """One stage, whose workers take a second per job and tell what they do."""

    def __init__(self, most: int = 50, capacity: float = math.inf) -> None:
        self.clock = ManualClock(1000.0)
        self.queues, self.pool = MadeUpQueues(), MadeUpPool()
        self.work: JobStatistics | None = None
        self.held: list[bool] = []
        rule, sampler = feed_forward(1, most, period=1.0), StageSampler(capacity)
        stage = Stage("s", self.pool, rule, queue="q", reported=lambda at: self.work, sampler=sampler)
        self.loop = Autoscaler([stage], self.clock, queues=self.queues, on_hold=self.held.append)

    def rounds(self, count: int, *looks: Look, seconds: float = 1.0) -> list[Round]:
        done = []
        for _ in range(count):
            self.queues.looks = list(looks) or self.queues.looks
            done.append(asyncio.run(self.loop.round()))
            self.clock.advance(seconds)
        return done

    def busy(self) -> int:
        """Work until there are several workers; how many."""
        for second in range(1, 20):
            self.work = JobStatistics(self.pool.on, 10 * second, 10 * second - self.pool.on)
            self.rounds(1, QueueStatistics(10, self.pool.on))
        assert self.pool.on > 5
        return self.pool.on


def test_a_stage_grows_with_its_queue_and_shrinks_without() -> None:
    bench = Bench()
    grown = bench.busy()
    done = 1_000
    for _ in range(200):
        bench.work = JobStatistics(0, done, done)
        bench.rounds(1, QueueStatistics(0, bench.pool.on))
    assert bench.pool.on < grown


@pytest.mark.parametrize(
    "look", [None, BrokerAway("RabbitMQ does not answer"), QueueStatistics(math.nan), QueueStatistics(-5)], ids=str
)
def test_while_nothing_can_be_known_the_size_is_held_and_that_is_said_once(
    look: Look, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench()
    grown = bench.busy()
    caplog.set_level(logging.INFO)
    caplog.clear()
    for each in bench.rounds(60, look):
        assert [stage.wanted for stage in each.stages] == [grown]
        assert each.stages[0].trouble
    assert len(caplog.records) == 1
    bench.rounds(3, QueueStatistics(10, grown))
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.INFO]


@pytest.mark.parametrize(
    ("look", "words"),
    [(None, "the queue q does not exist"), (BrokerAway("RabbitMQ is away"), "RabbitMQ is away")],
    ids=str,
)
def test_why_a_size_is_held_names_what_is_not_there(look: Look, words: str) -> None:
    bench = Bench()
    grown = bench.busy()
    assert bench.rounds(1, look)[0].stages[0].why == f"holds at {grown}: {words}"


def test_after_a_minute_away_nobody_is_started_or_stopped_in_a_rush() -> None:
    bench = Bench()
    grown = bench.busy()
    bench.rounds(61, BrokerAway("away"))
    back = bench.rounds(1, QueueStatistics(10, grown))[0]
    assert back.stages[0].wanted == grown


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_jumps_changes_nothing(jump: float) -> None:
    bench = Bench()
    grown = bench.busy()
    bench.clock.advance(jump)
    assert bench.rounds(1, QueueStatistics(10, grown))[0].stages[0].wanted == grown


def test_the_pool_is_told_its_size_also_while_the_broker_is_away() -> None:
    bench = Bench()
    grown = bench.busy()
    bench.pool.told.clear()
    bench.rounds(3, BrokerAway("away"))
    assert bench.pool.told == [grown] * 3


def test_a_pool_that_cannot_be_asked_keeps_its_size(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    grown = bench.busy()
    bench.pool.trouble = "Kubernetes says 500"
    for each in bench.rounds(20):
        assert each.stages[0].wanted == grown
    assert sum("Kubernetes says 500" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize(("on", "wanted"), [(7, 7), (0, 1)])
def test_a_stage_of_which_nothing_was_ever_known_keeps_its_workers_or_gets_its_first(on: int, wanted: int) -> None:
    bench = Bench()
    bench.pool.on = on
    for each in bench.rounds(3, None):
        assert each.stages[0].wanted == wanted
    assert bench.pool.on == wanted


def test_one_chain_may_mix_pools_in_the_process_and_at_a_broker() -> None:
    clock, queues, remote = ManualClock(1000.0), MadeUpQueues(), MadeUpPool()
    slots = FetchSlots(8, clock, 1.0, lambda: 0)
    stages = [
        Stage("fetch", InProcess(slots), feed_forward(1, 8, period=1.0)),
        Stage("resize", remote, feed_forward(1, 20, period=1.0), queue="images"),
    ]
    autoscaler = Autoscaler(stages, clock, queues=queues)
    queues.looks = [QueueStatistics(10, 1)]
    done = asyncio.run(autoscaler.round())
    assert [(each.stage, each.queue) for each in done.stages] == [("fetch", 0), ("resize", 10)]
    assert remote.told == [11]
    queues.looks = [BrokerAway("RabbitMQ is away")]
    clock.advance(1.0)
    fetch, resize = asyncio.run(autoscaler.round()).stages
    assert (fetch.trouble, resize.trouble, resize.wanted) == ("", "RabbitMQ is away", 11)


def test_the_source_is_held_when_a_queue_would_fill_and_let_go_later() -> None:
    bench = Bench(most=1, capacity=100)
    bench.rounds(1, QueueStatistics(80, 1))
    bench.rounds(1, QueueStatistics(60, 1))
    bench.rounds(2, QueueStatistics(1, 1))
    assert bench.held == [True, False]


def test_the_loop_runs_by_the_clock_until_it_is_stopped() -> None:
    bench = Bench()

    async def story() -> int:
        running = asyncio.create_task(bench.loop.run())
        for _ in range(5):
            for _ in range(20):
                await asyncio.sleep(0)
            bench.clock.advance(1.0)
        bench.loop.stop()
        for _ in range(20):
            await asyncio.sleep(0)
        bench.clock.advance(1.0)
        await running
        return len(bench.pool.told)

    assert 5 <= asyncio.run(story()) <= 7
