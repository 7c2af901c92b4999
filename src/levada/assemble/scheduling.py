"""The one process that hands out a collection's pages to workers: lock, store, robots.txt, RabbitMQ, index."""

from __future__ import annotations

import asyncio
import secrets
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from levada.adapters.rabbitmq_jobs import Job, RabbitmqJobs
from levada.adapters.sqlite import SqliteStore
from levada.assemble.controlling import StagePlan
from levada.assemble.folder import DataFolder
from levada.assemble.indexer import IndexerChild
from levada.assemble.limits import store_limits
from levada.assemble.parts import make_clock, make_fetcher
from levada.assemble.sharing import make_collection_name
from levada.assemble.working import CAPACITY, queue_capacities
from levada.clock import SystemClock
from levada.errors import StoreError
from levada.flow.messages import QueueNames
from levada.flow.scheduling import Scheduler, SchedulerPorts
from levada.flow.settings import Settings
from levada.flow.storekeeper import Storekeeper
from levada.records import Found

__all__ = ["HandingOut", "open_handing_out"]

_LOOK = 1.0  # seconds between two looks at whether there is something to index


class HandingOut:
    """`run` it beside the control loop."""

    def __init__(self, scheduler: Scheduler, jobs: RabbitmqJobs, names: QueueNames, store: SqliteStore) -> None:
        self.scheduler = scheduler
        self._jobs = jobs
        self._names = names
        self._store = store
        self._stopping = asyncio.Event()
        self.indexer: IndexerChild | None = None

    def stages(self, limits: Sequence[StagePlan], data: Path, python: Sequence[str]) -> tuple[StagePlan, ...]:
        """The stages `fetch` and `catalog` with their queues, and a command for workers of this machine."""
        queues = {"fetch": self._names.fetch, "catalog": self._names.catalog}
        plans = []
        for each in limits:
            words = [*python, "work", "--stage", each.name, "--data", str(data.absolute())]
            command = " ".join(shlex.quote(word) for word in words)
            plans.append(StagePlan(each.name, queues[each.name], each.least, each.most, command, CAPACITY))
        return tuple(plans)

    def stop(self) -> None:
        self._stopping.set()
        self.scheduler.stop()

    async def run(self) -> None:
        async def heard(job: Job) -> None:
            await self.scheduler.hear(job.body, job.again)

        following = asyncio.ensure_future(self._follow())
        listening = asyncio.ensure_future(self._jobs.work(self._names.answers, heard, self._stopping))
        try:
            await self.scheduler.run()
        finally:
            self._stopping.set()
            following.cancel()
            await asyncio.gather(listening, following, return_exceptions=True)

    async def _follow(self) -> None:
        """The index follows what the catalog workers commit."""
        last = -1
        while True:
            newest = await asyncio.to_thread(self._store.newest_seq)
            if newest != last and self.indexer is not None:
                last = newest
                self.indexer.wake()
            await asyncio.sleep(_LOOK)


@asynccontextmanager
async def open_handing_out(
    folder: DataFolder, settings: Settings, start: Sequence[Found], url: str
) -> AsyncIterator[HandingOut]:
    """Whoever handed out pages before is dead, for the lock is ours: what was leased is free, and what still waits
    to be fetched is void. What is being fetched is stored all the same, unless it is handed out anew before."""
    clock, fetcher = make_clock(settings.clock), make_fetcher(settings)
    folder.make()
    with folder.locked():
        store = SqliteStore(folder.database, limits=store_limits(settings))
        keeper = Storekeeper()
        try:
            folder.save_settings(settings)
            names = QueueNames(make_collection_name(folder))
            store.add(start, [], clock.now())
            jobs = RabbitmqJobs(url, SystemClock(), queue_capacities(names))
            await jobs.open()
            await jobs.purge(names.fetch)
            store.forget_leases()

            async def publish(queue: str, body: bytes) -> bool:
                return await jobs.publish(queue, body, secrets.token_hex(8))

            ports = SchedulerPorts(clock, store, store, fetcher, publish)
            handing = HandingOut(Scheduler(ports, settings, names, keeper), jobs, names, store)
            handing.indexer = IndexerChild(folder, settings.index.batch, settings.index.heap)
            try:
                yield handing
            finally:
                trouble = handing.indexer.finish()
                await jobs.close()
            if trouble:
                raise StoreError(f"the pages are stored, but the search index is behind: {trouble}")
        finally:
            await fetcher.close()
            keeper.close()
            store.close()
