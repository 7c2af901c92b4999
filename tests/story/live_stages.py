"""The report's three stages, live: a source, RabbitMQ, workers that sleep, and the simulator's controller."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from levada.core.clock import SystemClock
from levada.core.errors import BrokerAway
from levada.core.reports import Round
from levada.engines.rabbitmq.jobs import RabbitmqJobs
from levada.engines.rabbitmq.queues import RabbitmqWatch
from levada.scale.autoscaler import Autoscaler, Stage
from levada.scale.reports import WorkerReports, read_report
from levada.scale.sampler import StageSampler
from levada.scale.statistics import PoolStatistics
from levada.stages import SizingRule, feed_forward
from tests.story.simulated_workers import CAPACITY

__all__ = ["PERIOD", "SCANNER", "SERVICES", "LiveRun", "live_rules", "live_run"]

SERVICES = (0.005, 0.1)  # a fiftieth of the report's
SCANNER = 0.002  # seconds between the jobs of one scanner, likewise
PERIOD = 0.05
_TICK = 0.01
_MOST_MISSED = 0.1  # seconds: what was not made while nobody could take it is not made up for
_ROOT = Path(__file__).parents[2]


def live_rules(most: Sequence[int]) -> tuple[SizingRule, ...]:
    return tuple(feed_forward(1, each, period=PERIOD, patience=0.2, drain=0.1) for each in most)


class SleepingPool:
    """A process of sleeping workers; one that was killed is started again."""

    def __init__(self, *arguments: str) -> None:
        self._command = [sys.executable, "-m", "tests.story.simulated_workers", *arguments]
        self.process: asyncio.subprocess.Process | None = None
        self._wanted = 0

    async def poll(self) -> PoolStatistics:
        return PoolStatistics(self._wanted)

    async def resize(self, wanted: int) -> None:
        if self.process is None or self.process.returncode is not None:
            self.process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, cwd=_ROOT
            )
            self._wanted = 0
        if wanted != self._wanted:
            assert self.process.stdin is not None
            self.process.stdin.write(b"%d\n" % wanted)
            self._wanted = wanted

    async def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            await self.process.wait()


class LiveRun:
    def __init__(self, url: str, prefix: str, store: Path, most: Sequence[int]) -> None:
        self._clock = SystemClock()
        self._store = store
        with sqlite3.connect(store) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE done (id INTEGER PRIMARY KEY, n INTEGER, again INTEGER)")
        database.close()
        self.queues = [f"{prefix}.orchestrate", f"{prefix}.catalog"]
        self._source = RabbitmqJobs(url, self._clock, dict.fromkeys(self.queues, CAPACITY))
        book = WorkerReports(silence=1.0)
        following = [self.queues[1], "-"]
        rules = live_rules(most)
        self.pools, stages = [], []
        for place, name in enumerate(("orchestrate", "catalog")):
            book.expect(name)
            words = (name, self.queues[place], following[place], str(SERVICES[place]), str(store))
            pool = SleepingPool(url, *words)
            self.pools.append(pool)
            told = partial(book.statistics, name)
            sampler = StageSampler(CAPACITY)
            stages.append(Stage(name, pool, rules[place], queue=self.queues[place], reported=told, sampler=sampler))
        self._watch = RabbitmqWatch(url, self._clock, seconds=1.0, hear=partial(self._hear, book))
        self.rounds: list[Round] = []
        self._held = False
        self.loop = Autoscaler(stages, self._clock, queues=self._watch, on_round=self.rounds.append, on_hold=self._hold)
        self.made = self.refused = 0

    def _hear(self, book: WorkerReports, body: bytes) -> None:
        if (report := read_report(body)) is not None:
            book.add(report, self._clock.monotonic())

    def _hold(self, held: bool) -> None:
        self._held = held

    async def open(self) -> None:
        await self._source.open()
        for pool in self.pools:
            await pool.resize(1)
        is_up = False
        while not is_up:
            await asyncio.sleep(0.05)
            is_up = all(look and look.consumers for look in await self._watch.poll(self.queues))

    async def close(self) -> None:
        for pool in self.pools:
            await pool.close()
        await self._watch.close()
        await self._source.close()

    async def make(self, scanners: float, until: Callable[[], bool]) -> None:
        """Jobs at that load; one that finds its queue full is offered again, as a publisher with confirms does."""
        before = self._clock.monotonic()
        while not until():
            await asyncio.sleep(_TICK)
            now = self._clock.monotonic()
            if not self._held:
                await self._send(_poisson(min(now - before, _MOST_MISSED) * scanners / SCANNER))
            before = now

    async def _send(self, count: int) -> None:
        numbers = range(self.made, self.made + count)
        self.made += count
        await asyncio.gather(*map(self._offer, numbers))

    async def _offer(self, number: int) -> None:
        while True:
            try:
                if await self._source.publish(self.queues[0], b"job", str(number)):
                    return
                self.refused += 1
            except BrokerAway:
                pass
            await asyncio.sleep(0.05)

    def stored(self) -> tuple[int, int]:
        """How many jobs, and how many times they were brought in all."""
        database = sqlite3.connect(self._store)
        try:
            kept, brought = database.execute("SELECT count(*), coalesce(sum(n), 0) FROM done").fetchone()
            return int(kept), int(brought)
        finally:
            database.close()

    async def stores(self, jobs: int, seconds: float = 30.0) -> bool:
        """Whether so many are stored within that time."""
        ends = self._clock.monotonic() + seconds
        while (kept := self.stored()[0]) < jobs and self._clock.monotonic() < ends:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        return kept >= jobs

    async def drained(self, seconds: float) -> bool:
        return await self.stores(self.made, seconds)


@asynccontextmanager
async def live_run(url: str, prefix: str, store: Path, most: Sequence[int]) -> AsyncIterator[LiveRun]:
    run = LiveRun(url, prefix, store, most)
    control: asyncio.Task[None] | None = None
    try:
        await run.open()
        control = asyncio.create_task(run.loop.run())
        yield run
    finally:
        run.loop.stop()
        if control is not None:
            await control
        await run.close()


def _poisson(mean: float) -> int:
    count, left = 0, random.expovariate(1.0)
    while left < mean:
        count += 1
        left += random.expovariate(1.0)
    return count
