"""A worker of one stage: RabbitMQ, the engines that it needs, and its reports, around a step of the flow."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import msgspec

from levada.collection.components import learn_from_sample, make_fetcher, make_hooks, make_parser, make_policy
from levada.core.clock import SystemClock, make_clock
from levada.core.errors import BrokerError, LevadaError
from levada.core.folder import DataFolder
from levada.core.processes import tune_allocator
from levada.crawl.commits import CommitPorts
from levada.crawl.executor import StoreExecutor
from levada.crawl.messages import QueueNames
from levada.crawl.rabbitmq_transport import CatalogWorker, FetchWorker
from levada.crawl.visits import Visitor
from levada.engines.rabbitmq.jobs import QueueJob, RabbitmqJobs
from levada.scale.reports import WorkerReport
from levada.store.base import Capability, WithLimits
from levada.store.opening import store_limits
from levada.store.workplace import WorkPlace, folder_workplace, server_workplace

log = logging.getLogger(__name__)

STAGES = ("fetch", "catalog")
CAPACITY = 100  # messages in a queue: beyond half of it the scheduler waits
_REPORT = 0.5  # seconds between two reports
_FOLLOW = 1.0  # seconds between two looks at the rules of sites
_RELEARN = 60.0  # seconds after which what all workers stored is looked at again

Step = Callable[[bytes, bool], Awaitable[None]]


def queue_capacities(names: QueueNames) -> dict[str, int]:
    return {names.fetch: CAPACITY, names.catalog: CAPACITY, names.answers: 0}


class StageWorker:
    """Takes one message after the other; told to stop, it finishes the one that it has."""

    def __init__(self, stage: str, queue: str, jobs: RabbitmqJobs, step: Step, beside: Callable[[], Awaitable[object]]):
        self._stage = os.environ.get("LEVADA_STAGE", stage)
        self._name = os.environ.get("LEVADA_WORKER") or f"{stage}-{os.getpid()}-{secrets.token_hex(4)}"
        control = os.environ.get("LEVADA_CONTROL", "")
        self._control = control if control.isdigit() else ""
        self._queue = queue
        self._jobs = jobs
        self._step = step
        self._beside = beside
        self._stopping = asyncio.Event()
        self.taken = self.done = 0

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        beside = asyncio.ensure_future(self._beside())
        reporting = asyncio.ensure_future(self._report())
        working = asyncio.ensure_future(self._jobs.work(self._queue, self._do, self._stopping))
        try:
            await asyncio.wait((working, beside), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            else:
                beside.result()  # an error of the store: without it nothing can be done
        finally:
            for task in (working, reporting, beside):
                task.cancel()
            await asyncio.gather(working, reporting, beside, return_exceptions=True)
            await self._tell()

    async def _do(self, job: QueueJob) -> None:
        self.taken += 1
        try:
            await self._step(job.body, job.again)
        finally:
            self.done += 1

    async def _report(self) -> None:
        while True:
            await self._tell()
            if self._control and os.getppid() != int(self._control):
                self.stop()  # nobody is left who would tell us to
            await asyncio.sleep(_REPORT)

    async def _tell(self) -> None:
        report = WorkerReport(1, self._stage, self._name, self.taken, self.done)
        with suppress(BrokerError):
            await self._jobs.report(msgspec.msgpack.encode(report))


def find_workplace(path: Path | None = None, server: str | None = None, name: str | None = None) -> WorkPlace:
    """The collection that a worker works on: in a folder, or, without one, on a PostgreSQL server."""
    if path is None and server is not None:
        return server_workplace(server, name)
    return folder_workplace(DataFolder(path or Path("levada-data")))


@asynccontextmanager
async def open_worker(place: WorkPlace, stage: str, url: str) -> AsyncIterator[StageWorker]:
    names = QueueNames(place.name)
    tune_allocator()
    jobs = RabbitmqJobs(url, SystemClock(), queue_capacities(names))
    opened = _fetching if stage == "fetch" else _cataloguing
    try:
        async with opened(place, names, jobs) as worker:
            yield worker
    finally:
        await jobs.close()


@asynccontextmanager
async def _fetching(place: WorkPlace, names: QueueNames, jobs: RabbitmqJobs) -> AsyncIterator[StageWorker]:
    settings = place.settings
    parse = msgspec.structs.replace(settings.parse, children=settings.parse.children or 1)
    parser = make_parser(msgspec.structs.replace(settings, parse=parse))
    clock, fetcher = make_clock(settings.clock), make_fetcher(settings, parser=parser)

    visitor = Visitor(fetcher, parser, make_policy(settings), clock, settings.politeness.agent)
    step = FetchWorker(visitor, clock, names, lambda queue, body: jobs.put(queue, body, secrets.token_hex(8)))
    try:
        yield StageWorker("fetch", names.fetch, jobs, step, asyncio.Event().wait)
    finally:
        await fetcher.close()
        await parser.close()


@asynccontextmanager
async def _cataloguing(place: WorkPlace, names: QueueNames, jobs: RabbitmqJobs) -> AsyncIterator[StageWorker]:
    settings = place.settings
    hooks = make_hooks(settings)
    store = place.open_store(store_limits(settings))
    policy, executor = make_policy(settings), StoreExecutor()
    ports = CommitPorts(make_clock(settings.clock), store, store, store, policy)
    step = CatalogWorker(ports, settings, names.collection, executor, hooks)

    async def learn() -> None:
        """Keep the estimates over all pages up to date with what others store."""
        while True:
            await executor.run(learn_from_sample, policy, store)
            await asyncio.sleep(_RELEARN)

    async def follow() -> None:
        """Go on with the rules of sites that the collection keeps."""
        rules = settings.site
        while True:
            await asyncio.sleep(_FOLLOW)
            try:
                now = await executor.run(place.settings_now)
            except LevadaError as error:
                log.debug("the rules of sites stay as they are: %s", error)
                continue
            if now.site != rules:
                rules = now.site
                changed = msgspec.structs.replace(settings, site=rules)
                if Capability.LIMITS in store.capabilities:
                    cast(WithLimits, store).set_limits(store_limits(changed))
                step.settings_changed(changed)

    async def beside() -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(learn())
                tasks.create_task(follow())
                tasks.create_task(step.run())
        except* LevadaError as group:
            raise group.exceptions[0] from None

    try:
        yield StageWorker("catalog", names.catalog, jobs, step, beside)
    finally:
        if hooks is not None:
            await asyncio.to_thread(hooks.close)
        executor.close()
        store.close()
