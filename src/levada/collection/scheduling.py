"""A crawl whose pages are visited by workers elsewhere: lock, store, robots.txt, RabbitMQ, control commands."""

from __future__ import annotations

import asyncio
import secrets
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from levada.collection.commands import open_commands
from levada.collection.components import (
    ReplaceableFetcher,
    ReplaceablePolicy,
    RunningSettings,
    learn_again,
    learn_from_sample,
    make_fetcher,
    make_policy,
)
from levada.collection.control import ControlPlan, StagePlan, open_control, until_stopped
from levada.collection.crawling import Following, open_followers
from levada.collection.forgetting.retention import retention_beside
from levada.collection.forgetting.unfinished import compact_for
from levada.collection.live import live_file_writer
from levada.collection.machines.clocks import shared_clock
from levada.collection.machines.waiting import Readiness, answering_health, persistently
from levada.collection.starts import add_start, forget_demo, limit_waits, reschedule, tidied
from levada.collection.working import CAPACITY, queue_capacities, store_executor
from levada.core.clock import SystemClock
from levada.core.configuration.kept import SettingChange
from levada.core.configuration.layers import Given
from levada.core.errors import BrokerAway, BrokerError, StoreError
from levada.core.folder import DataFolder
from levada.core.processes import module_command
from levada.core.protocols import Clock, RevisitPolicy
from levada.core.records import FoundUrl
from levada.core.reports import Round
from levada.core.settings import Settings
from levada.crawl.commits import CrawlPorts, Overview
from levada.crawl.distributed.messages import QueueNames, ToFetch, read_message
from levada.crawl.distributed.ownership import SiteOwnership
from levada.crawl.distributed.transport import RabbitmqTransport
from levada.crawl.engine import Crawl
from levada.crawl.executor import StoreExecutor
from levada.engines.rabbitmq.jobs import QueueJob, RabbitmqJobs
from levada.scale.autoscaler import Autoscaler
from levada.store.base import Store
from levada.store.opening import (
    make_collection_name,
    newest_of_shards,
    open_reading_store,
    open_store,
    place_if_new,
    store_limits,
)
from levada.store.workplace import home_of, is_shared, share

_ANSWERS = 16  # messages of answers in hand
_LOOK = 1.0  # seconds between two looks at whether there is something to index
_RELEARN = 60.0  # seconds after which what the workers stored is looked at again
_WATCH = 1.0  # seconds of the wall between two looks at the whole collection


async def crawl_by_workers(
    path: Path,
    settings: Settings,
    start: Sequence[FoundUrl],
    plan: ControlPlan,
    limits: Sequence[StagePlan],
    stop: asyncio.Event,
    *,
    seconds: float | None = None,
    on_round: Callable[[Round], None] = lambda done: None,
    given: Given | None = None,
    on_kept: Callable[[Sequence[SettingChange]], None] = lambda changes: None,
    health: tuple[str, int] | None = None,
) -> None:
    """Hand out the pages of a crawl to workers and scale them, until `stop` is set or for so many seconds.

    `limits` has the stages `fetch` and `catalog`; the plan's own stages are not read. `given` are those of the
    settings that the collection keeps from now on, and `on_kept` is called with what it did not keep before. While
    PostgreSQL or RabbitMQ is away, it waits; `health` is where it says so.
    """
    folder, readiness = DataFolder(path, given), Readiness()

    async def attempt(is_open: Callable[[], None]) -> None:
        opened = _open_distributed_crawl(folder, settings, start, plan.url, on_kept, readiness)
        async with opened as (crawl, transport, names):
            is_open()
            await _run(crawl, transport, names, stop)

    async def _run(crawl: Crawl, transport: RabbitmqTransport, names: QueueNames, stop: asyncio.Event) -> None:
        def stage(limit: StagePlan) -> StagePlan:
            """Without a Deployment, its workers run on this machine."""
            words = [*module_command("levada"), "work", "--stage", limit.name, "--data", str(path.absolute())]
            queue = {"fetch": names.fetch, "catalog": names.catalog}[limit.name]
            command = limit.command or shlex.join(words)
            return replace(limit, queue=queue, command=command, capacity=CAPACITY, reports=queue)

        def reporting(stage: str, workers: int) -> None:
            if stage == "fetch":
                transport.set_workers(workers)

        def decided(done: Round) -> None:
            transport.views = tuple(each.view() for each in done.stages)
            on_round(done)

        whole = replace(plan, stages=tuple(map(stage, limits)))
        opened = open_control(
            whole, on_round=decided, hold=transport.hold, on_workers=reporting, leads=lambda: transport.leads
        )
        async with opened as autoscaler:
            await until_stopped(_both(crawl, autoscaler), stop, None, crawl.stop, autoscaler.stop)

    with answering_health(health, readiness):
        limit = asyncio.get_running_loop().call_later(seconds, stop.set) if seconds is not None else None
        try:
            await persistently(attempt, stop, readiness, SystemClock())
        finally:
            if limit is not None:
                limit.cancel()


async def _both(crawl: Crawl, autoscaler: Autoscaler) -> None:
    """Run both until one of them ends: neither is of use without the other."""
    tasks: list[asyncio.Future[object]] = [asyncio.ensure_future(each.run()) for each in (crawl, autoscaler)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        crawl.stop()
        autoscaler.stop()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


@asynccontextmanager
async def _open_distributed_crawl(
    folder: DataFolder,
    settings: Settings,
    start: Sequence[FoundUrl],
    url: str,
    on_kept: Callable[[Sequence[SettingChange]], None],
    readiness: Readiness,
) -> AsyncIterator[tuple[Crawl, RabbitmqTransport, QueueNames]]:
    """A crawl with its transport, which is told what the autoscaler decides: the stages it sees, and when to hold.

    Whoever handed out pages before is dead, for the lock is ours: what still waits to be fetched is taken back.

    Workers of that one, if it ran in this folder, end by themselves, and what they had is free at once. Workers of
    other machines go on: what they have in hand stays theirs until its lease ends.
    """
    policy = ReplaceablePolicy(make_policy(settings))
    fetcher = ReplaceableFetcher(make_fetcher(settings, folder=folder))
    folder.make()
    async with AsyncExitStack() as opened:
        opened.push_async_callback(fetcher.close)
        opened.enter_context(folder.locked())
        place_if_new(folder, settings.store)
        share(folder, settings)
        clock = await opened.enter_async_context(shared_clock(home_of(folder), settings.clock))
        commands = opened.enter_context(closing(open_commands(folder, settings)))
        options = settings.plugins.get(settings.store.engine)
        store = opened.enter_context(
            closing(open_store(folder, settings.store, store_limits(settings), options=options))
        )
        executor = opened.enter_context(closing(store_executor(store, readiness)))
        reader = opened.enter_context(closing(open_reading_store(folder)))
        overview = Overview(reader, opened.enter_context(closing(store_executor(reader, readiness))))
        names = QueueNames(make_collection_name(folder))
        ownership = await _ownership(folder, settings, clock, readiness, opened)
        add_start(tidied(start, settings), store, clock.now())
        learn_from_sample(policy, store)
        jobs = RabbitmqJobs(
            url,
            SystemClock(),
            queue_capacities(names, shared=ownership is not None),
            own="" if ownership is None else names.answers_to(ownership.name),
            on_trouble=lambda trouble: readiness.note("RabbitMQ", trouble),
        )
        opened.push_async_callback(jobs.close)
        await jobs.open()
        if ownership is None:
            await _take_back(jobs, names, store)
            store.forget_leases()
        reschedule(folder, store, settings, clock.now())
        on_kept(folder.save_settings(settings))
        forget_demo(folder)
        limit_waits(store, settings, clock.now())

        following = [each for each in open_followers(folder, settings) if each is not None]
        compact = partial(compact_for, folder, store, following[0].wake)
        running = RunningSettings(folder, settings, store, fetcher, None, policy, clock, lambda now: share(folder, now))
        ports = CrawlPorts(
            clock,
            store,
            store,
            store,
            policy,
            reader,
            fetcher,
            commands,
            running,
            lambda: bool(store.away),
            compact,
            overview,
        )
        transport = RabbitmqTransport(
            names, lambda queue, body: jobs.publish(queue, body, secrets.token_hex(8)), ownership
        )
        opened.callback(folder.forget_live)
        crawl = Crawl(
            ports,
            settings,
            transport,
            alone=not is_shared(folder),
            executor=executor,
            watch=_WATCH,
            board=live_file_writer(folder, lambda: following[-1].balance),
            beside=(
                partial(_take_answers, jobs, transport, alone=ownership is None),
                partial(_follow, reader, overview.executor, following),
                partial(_learn, reader, overview.executor, policy),
                *retention_beside(store, settings, clock),
            ),
        )
        try:
            yield crawl, transport, names
            if ownership is not None and transport.may_leave:
                await ownership.leave()
        finally:
            troubles = [trouble for each in following if (trouble := each.finish())]
        if troubles:
            raise StoreError(f"the pages are stored, but their index or counts are behind: {troubles[0]}")


async def _ownership(
    folder: DataFolder, settings: Settings, clock: Clock, readiness: Readiness, opened: AsyncExitStack
) -> SiteOwnership | None:
    """The hold on sites of a collection that several controls may share; None where the folder's lock is enough."""
    if not (home := home_of(folder)):
        return None
    from levada.store.postgresql.ownership import PostgresqlOwnership

    table = opened.enter_context(closing(PostgresqlOwnership(home, make_collection_name(folder))))
    executor = opened.enter_context(closing(StoreExecutor()))  # a renewal waits for no lease and no commit
    note = partial(readiness.note, "the owners of the sites")
    name, speed = secrets.token_hex(6), settings.clock.speed
    return SiteOwnership(table, name, executor, clock, speed=speed, on_trouble=note)


async def _take_answers(jobs: RabbitmqJobs, transport: RabbitmqTransport, *, alone: bool) -> None:
    """Take answers; with `alone`, nobody else may, because two would take each other's."""

    async def take(job: QueueJob) -> None:
        await transport.receive(job.body, job.again)

    try:
        await jobs.work(transport.answers, take, asyncio.Event(), at_once=_ANSWERS, alone=alone)
    except BrokerAway:
        raise
    except BrokerError as error:
        if not alone:
            raise
        raise BrokerError(
            "another levada control hands out pages of this collection by the same RabbitMQ: stop it; if this folder "
            "is a copy, delete its file 'collection' to make it a collection of its own"
        ) from error


async def _take_back(jobs: RabbitmqJobs, names: QueueNames, store: Store) -> None:
    for body in await jobs.drain(names.fetch):
        order = read_message(ToFetch, body, names.collection)
        if order is not None:
            store.release(order.leases)


async def _follow(store: Store, executor: StoreExecutor, following: Sequence[Following]) -> None:
    """The index and the counts follow what the catalog workers commit, on whatever machine and shard."""
    last: dict[int, int] = {}
    while True:
        seen = {**last, **await executor.run(newest_of_shards, store)}
        if seen != last:
            for each in following:
                each.wake()
        last = seen
        await asyncio.sleep(_LOOK)


async def _learn(store: Store, executor: StoreExecutor, policy: RevisitPolicy) -> None:
    """Keep the estimates over all pages up to date with what the workers store."""
    while True:
        await asyncio.sleep(_RELEARN)
        await learn_again(policy, store, executor)
