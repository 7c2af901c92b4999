"""A worker of one stage: RabbitMQ, the engines that it needs, and its reports, around a step of the flow."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Protocol, cast

import msgspec

from levada.collection.components import learn_again, make_fetcher, make_hooks, make_parser, make_policy
from levada.collection.control import until_stopped
from levada.collection.machines.clocks import shared_clock
from levada.collection.machines.waiting import PatientExecutor, Readiness, persistently
from levada.core.clock import SystemClock
from levada.core.errors import BrokerError, LevadaError
from levada.core.folder import DataFolder
from levada.core.processes import tune_allocator
from levada.core.protocols import Clock
from levada.crawl.commits import CommitPorts
from levada.crawl.distributed.catalog_worker import CatalogWorker
from levada.crawl.distributed.fetch_worker import FetchWorker
from levada.crawl.distributed.messages import QueueNames
from levada.crawl.visits import Visitor
from levada.engines.rabbitmq.jobs import QueueJob, RabbitmqJobs
from levada.scale.reports import WorkerReport
from levada.store.base import Capability, Store, WithLimits
from levada.store.opening import store_limits
from levada.store.workplace import WorkPlace, folder_workplace, server_workplace

log = logging.getLogger(__name__)

STAGES = ("fetch", "catalog")
CAPACITY = 100  # messages in a queue: beyond half of it the scheduler waits
_REPORT = 0.5  # seconds between two reports
_LOOKS = 10  # at how much of a worker is in use, for a report
_MESSAGES = 8  # that a catalog worker has in hand: while it commits, the next ones are decided
_FOLLOW = 1.0  # seconds between two looks at the rules of sites
_RELEARN = 60.0  # seconds after which what all workers stored is looked at again


class Step(Protocol):
    """What a stage does with a message."""

    @property
    def used(self) -> float:
        """The share of the worker that is in use now."""
        ...

    async def __call__(self, body: bytes, again: bool) -> None: ...

    async def run(self) -> None:
        """What must run at the same time; until cancelled."""

    def stop(self) -> None:
        """Begin nothing new."""


def queue_capacities(names: QueueNames, *, shared: bool) -> dict[str, int]:
    """The queues of a collection; where schedulers share it, each has a queue of its own for answers."""
    return {names.fetch: CAPACITY, names.catalog: CAPACITY} | ({} if shared else {names.answers: 0})


class StageWorker:
    """Does the messages of a queue, `at_once` at the same time; told to stop, it finishes those that it has."""

    def __init__(
        self,
        stage: str,
        queue: str,
        jobs: RabbitmqJobs,
        step: Step,
        at_once: int,
        beside: Callable[[], Awaitable[object]],
    ) -> None:
        self._name = os.environ.get("LEVADA_WORKER") or f"{stage}-{os.getpid()}-{secrets.token_hex(4)}"
        control = os.environ.get("LEVADA_CONTROL", "")
        self._control = control if control.isdigit() else ""
        self._queue = queue
        self._jobs = jobs
        self._step = step
        self._at_once = at_once
        self._beside = beside
        self._stopping = asyncio.Event()
        self._looks: list[float] = []  # how much of the worker was in use, at each since the last report
        self.taken = self.done = 0

    def stop(self) -> None:
        self._stopping.set()
        self._step.stop()

    async def run(self) -> None:
        beside = [asyncio.ensure_future(each()) for each in (self._beside, self._step.run)]
        reporting = asyncio.ensure_future(self._report())
        working = asyncio.ensure_future(self._jobs.work(self._queue, self._do, self._stopping, at_once=self._at_once))
        try:
            await asyncio.wait((working, *beside), return_when=asyncio.FIRST_COMPLETED)
            for task in (working, *beside):
                if task.done():
                    task.result()  # an error of the store: without it nothing can be done
        finally:
            for task in (working, reporting, *beside):
                task.cancel()
            await asyncio.gather(working, reporting, *beside, return_exceptions=True)
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
            for _ in range(_LOOKS):
                await asyncio.sleep(_REPORT / _LOOKS)
                self._looks.append(self._step.used)

    async def _tell(self) -> None:
        looks, self._looks = self._looks, []
        used = fmean(looks) if looks else self._step.used
        # By the name of the queue: workers of every collection report to the same exchange.
        report = WorkerReport(1, self._queue, self._name, self.taken, self.done, used)
        with suppress(BrokerError):
            await self._jobs.report(msgspec.msgpack.encode(report))


def find_workplace(path: Path | None = None, server: str | None = None, name: str | None = None) -> WorkPlace:
    """The collection that a worker works on: in a folder, or, without one, on a PostgreSQL server."""
    if path is None and server is not None:
        return server_workplace(server, name)
    return folder_workplace(DataFolder(path or Path("levada-data")))


async def work(find: Callable[[], WorkPlace], stage: str, url: str, stop: asyncio.Event, readiness: Readiness) -> int:
    """Work until `stop` is set; returns the messages done. While a server is away, wait for it."""
    done = 0

    async def attempt(is_open: Callable[[], None]) -> None:
        nonlocal done
        place = await asyncio.to_thread(find)
        with closing(place):
            async with open_worker(place, stage, url, readiness) as worker:
                is_open()
                try:
                    await until_stopped(worker.run(), stop, None, worker.stop)
                finally:
                    done += worker.done

    await persistently(attempt, stop, readiness, SystemClock())
    return done


@asynccontextmanager
async def open_worker(place: WorkPlace, stage: str, url: str, readiness: Readiness) -> AsyncIterator[StageWorker]:
    names = QueueNames(place.name)
    tune_allocator()
    capacities = queue_capacities(names, shared=place.is_shared)
    jobs = RabbitmqJobs(url, SystemClock(), capacities, on_trouble=partial(readiness.note, "RabbitMQ"))
    try:
        async with AsyncExitStack() as opened:
            clock = await opened.enter_async_context(shared_clock(place.home, place.settings.clock))
            is_fetching = stage == "fetch"
            work = (
                _fetching(place, names, jobs, clock) if is_fetching else _storing(place, names, jobs, clock, readiness)
            )
            yield await opened.enter_async_context(work)
    finally:
        await jobs.close()


def store_executor(store: Store, readiness: Readiness) -> PatientExecutor:
    """The thread of a store. Of several shards the others go on while one is away; one alone is waited for."""
    return PatientExecutor(SystemClock(), readiness, patient=len(store.shards) == 1)


@asynccontextmanager
async def _fetching(
    place: WorkPlace, names: QueueNames, jobs: RabbitmqJobs, clock: Clock
) -> AsyncIterator[StageWorker]:
    settings = place.settings
    parse = msgspec.structs.replace(settings.parse, children=settings.parse.children or 1)
    parser = make_parser(msgspec.structs.replace(settings, parse=parse))
    fetcher = make_fetcher(settings, parser=parser)

    visitor = Visitor(fetcher, parser, make_policy(settings), clock, settings.politeness.agent)
    slots = settings.fetch.slots
    step = FetchWorker(
        visitor,
        clock,
        names,
        lambda queue, body: jobs.put(queue, body, secrets.token_hex(8)),
        slots=slots,
        most_bytes=settings.fetch.max_buffered_bytes // 2,
        speed=settings.clock.speed,
    )
    try:
        # A message may have one page: so many are taken that there is one for each slot, and each may wait for it.
        yield StageWorker("fetch", names.fetch, jobs, step, slots, asyncio.Event().wait)
    finally:
        await fetcher.close()
        await parser.close()


@asynccontextmanager
async def _storing(
    place: WorkPlace, names: QueueNames, jobs: RabbitmqJobs, clock: Clock, readiness: Readiness
) -> AsyncIterator[StageWorker]:
    settings = place.settings
    hooks = make_hooks(settings)
    store = await asyncio.to_thread(place.open_store, store_limits(settings))
    reader = await asyncio.to_thread(place.open_store, store_limits(settings))
    policy, executor, overview = (
        make_policy(settings),
        store_executor(store, readiness),
        store_executor(reader, readiness),
    )
    ports = CommitPorts(clock, store, store, store, policy)
    step = CatalogWorker(ports, settings, names.collection, executor, hooks)

    async def learn() -> None:
        """Keep the estimates over all pages up to date with what others store."""
        while True:
            await learn_again(policy, reader, overview)  # commits do not wait for it
            await asyncio.sleep(_RELEARN)

    async def follow() -> None:
        """Go on with the rules of sites that the collection keeps."""
        rules = settings.site
        while True:
            await asyncio.sleep(_FOLLOW)
            try:
                now = await overview.run(place.settings_now)
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
        except* LevadaError as group:
            raise group.exceptions[0] from None

    try:
        yield StageWorker("catalog", names.catalog, jobs, step, _MESSAGES, beside)
    finally:
        executor.give_up()
        overview.give_up()
        if hooks is not None:
            await asyncio.to_thread(hooks.close)
        for thread, opened in ((executor, store), (overview, reader)):
            thread.close()
            opened.close()
