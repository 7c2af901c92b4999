"""Workers of one stage that only sleep, as many as the input says: one process of them, because a machine has few
cores.

`python -m tests.story.simulated_workers URL STAGE QUEUE NEXT SECONDS STORE`: a job is slept over for an exponential
time and passed on to NEXT, or, where that is `-`, kept in the table of STORE under its own id. A line on the
input is the number of workers wanted from now on; the end of the input means that all are to stop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sqlite3
import sys

import msgspec

from levada.core.clock import SystemClock
from levada.engines.rabbitmq.jobs import QueueJob, RabbitmqJobs
from levada.scale.reports import WorkerReport

__all__ = ["CAPACITY", "Sleepers"]

CAPACITY = 100
_REPORT = 0.025


class Sleepers:
    def __init__(self, url: str, stage: str, queue: str, following: str, seconds: float, store: str) -> None:
        queues = {name: CAPACITY for name in (queue, following) if name != "-"}
        self._jobs = RabbitmqJobs(url, SystemClock(), queues)
        self._stage, self._queue, self._next = stage, queue, following
        self._seconds = seconds
        self._store = sqlite3.connect(store, isolation_level=None, timeout=30)
        self._workers: dict[asyncio.Event, asyncio.Task[None]] = {}
        self._busy: set[asyncio.Event] = set()
        self._taken = self._done = 0

    async def run(self) -> None:
        reporting = asyncio.create_task(self._report())
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            self._resize(int(line))
        self._resize(0)
        while self._workers:
            await asyncio.wait(self._workers.values())
        reporting.cancel()
        await self._jobs.close()

    def _resize(self, wanted: int) -> None:
        on = [stop for stop in self._workers if not stop.is_set()]
        for _ in range(wanted - len(on)):
            stop = asyncio.Event()
            self._workers[stop] = asyncio.create_task(self._work(stop))
        on.sort(key=lambda stop: stop in self._busy)  # idle ones go first
        for stop in on[: max(0, len(on) - wanted)]:
            stop.set()

    async def _work(self, stop: asyncio.Event) -> None:
        async def do(job: QueueJob) -> None:
            self._taken += 1
            self._busy.add(stop)
            try:
                await asyncio.sleep(random.expovariate(1.0 / self._seconds))
                await self._pass_on(job)
            finally:
                self._busy.discard(stop)
                self._done += 1

        try:
            await self._jobs.work(self._queue, do, stop)
        finally:
            del self._workers[stop]

    async def _pass_on(self, job: QueueJob) -> None:
        if self._next != "-":
            await self._jobs.put(self._next, job.body, job.id)
        else:
            row = (int(job.id), job.again)
            self._store.execute("INSERT INTO done VALUES (?, 1, ?) ON CONFLICT (id) DO UPDATE SET n = n + 1", row)

    async def _report(self) -> None:
        name = f"{self._stage}-{os.getpid()}"
        while True:
            report = WorkerReport(1, self._stage, name, self._taken, self._done)
            await self._jobs.report(msgspec.msgpack.encode(report))
            await asyncio.sleep(_REPORT)


if __name__ == "__main__":
    import uvloop

    logging.getLogger("aiormq").setLevel(logging.CRITICAL)
    url, stage, queue, following, seconds, store = sys.argv[1:]
    uvloop.run(Sleepers(url, stage, queue, following, float(seconds), store).run())
