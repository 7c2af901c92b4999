"""The one process that hands out a collection's pages to workers: lock, store, robots.txt, RabbitMQ, orders."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

from levada.adapters.rabbitmq_jobs import Job, RabbitmqJobs
from levada.assemble.controlling import StagePlan
from levada.assemble.folder import DataFolder
from levada.assemble.follower_team import FollowerTeam, followers
from levada.assemble.following import Follower
from levada.assemble.indexer import IndexerChild
from levada.assemble.limits import store_limits
from levada.assemble.ordering import open_orders
from levada.assemble.parts import make_clock, make_fetcher, make_policy, remember_pages
from levada.assemble.shared import is_shared, share
from levada.assemble.sharing import make_collection_name
from levada.assemble.starting import add_start, limit_waits
from levada.assemble.stores import CollectionStore, open_store, place_if_new
from levada.assemble.working import CAPACITY, queue_capacities
from levada.clock import SystemClock
from levada.errors import StoreError
from levada.flow.handing_view import HandingView
from levada.flow.live import LiveBoard
from levada.flow.messages import QueueNames, ToFetch, read_message
from levada.flow.replanning import ReplanningStep
from levada.flow.scheduling import Scheduler, SchedulerPorts
from levada.flow.settings import Settings
from levada.flow.storekeeper import Storekeeper
from levada.ports import RevisitPolicy
from levada.records import Found

__all__ = ["HandingOut", "open_handing_out"]

_LOOK = 1.0  # seconds between two looks at whether there is something to index
_RELEARN = 60.0  # seconds after which what the workers stored is looked at again
_REPLAN_PAUSE = 0.2  # seconds of the wall: planning pages anew takes a small part of a core


class HandingOut:
    """`run` it beside the control loop; its `view` is told of every round."""

    def __init__(
        self,
        scheduler: Scheduler,
        view: HandingView,
        jobs: RabbitmqJobs,
        names: QueueNames,
        beside: Sequence[Callable[[], Coroutine[Any, Any, None]]],
    ) -> None:
        self.scheduler = scheduler
        self.view = view
        self._jobs = jobs
        self._names = names
        self._beside = beside
        self._stopping = asyncio.Event()

    def stages(self, limits: Sequence[StagePlan], data: Path, python: Sequence[str]) -> tuple[StagePlan, ...]:
        """The stages `fetch` and `catalog` with their queues; without a Deployment, workers of this machine."""
        queues = {"fetch": self._names.fetch, "catalog": self._names.catalog}
        plans = []
        for each in limits:
            words = [*python, "work", "--stage", each.name, "--data", str(data.absolute())]
            command = each.command or " ".join(shlex.quote(word) for word in words)
            plans.append(StagePlan(each.name, queues[each.name], each.least, each.most, command, CAPACITY))
        return tuple(plans)

    def stop(self) -> None:
        self._stopping.set()
        self.scheduler.stop()

    async def run(self) -> None:
        async def heard(job: Job) -> None:
            await self.scheduler.hear(job.body, job.again)

        tasks = [asyncio.ensure_future(work()) for work in self._beside]
        tasks.append(asyncio.ensure_future(self._jobs.work(self._names.answers, heard, self._stopping)))
        for task in tasks:
            task.add_done_callback(self._ended)
        try:
            await self.scheduler.run()
        finally:
            self.stop()
            for task in tasks[:-1]:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    def _ended(self, task: asyncio.Future[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.stop()  # an error of the store: nothing can be done without it


@asynccontextmanager
async def open_handing_out(
    folder: DataFolder, settings: Settings, start: Sequence[Found], url: str
) -> AsyncIterator[HandingOut]:
    """Whoever handed out pages before is dead, for the lock is ours. What still waits to be fetched is taken back.

    Workers of that one, if it ran in this folder, end by themselves, and what they had is free at once. Workers of
    other machines go on: what they have in hand stays theirs until its lease ends.
    """
    clock, policy, fetcher = make_clock(settings.clock), make_policy(settings), make_fetcher(settings)
    folder.make()
    async with AsyncExitStack() as opened:
        opened.push_async_callback(fetcher.close)
        opened.enter_context(folder.locked())
        orders = opened.enter_context(closing(open_orders(folder, settings)))
        place_if_new(folder, settings.store)
        share(folder, settings)
        store = opened.enter_context(closing(open_store(folder, settings.store, store_limits(settings))))
        folder.save_settings(settings)
        keeper = opened.enter_context(closing(Storekeeper()))
        names = QueueNames(make_collection_name(folder))
        add_start(start, store, clock.now())
        remember_pages(policy, store)
        jobs = RabbitmqJobs(url, SystemClock(), queue_capacities(names))
        opened.push_async_callback(jobs.close)
        await jobs.open()
        await _take_back(jobs, names, store)
        if not is_shared(folder):
            store.forget_leases()
        limit_waits(store, settings, clock.now())

        async def publish(queue: str, body: bytes) -> bool:
            return await jobs.publish(queue, body, secrets.token_hex(8))

        ports = SchedulerPorts(clock, store, store, fetcher, publish, policy, orders)
        view = HandingView(clock, settings.clock.speed, policy.beliefs)
        scheduler = Scheduler(ports, settings, names, keeper, view.answered)
        opened.callback(folder.forget_live)
        following = _followers(folder, settings)
        board = LiveBoard(os.getpid(), folder.save_live, lambda: following[-1].balance)
        pause = _REPLAN_PAUSE * settings.clock.speed
        try:
            yield HandingOut(
                scheduler,
                view,
                jobs,
                names,
                (
                    partial(view.watch, scheduler, store, keeper),
                    partial(board.run, view),
                    partial(_follow, store, keeper, following),
                    partial(_learn, store, keeper, policy),
                    ReplanningStep(store, store, policy, keeper, clock, pause).run,
                ),
            )
        finally:
            troubles = [trouble for each in following if (trouble := each.finish())]
        if troubles:
            raise StoreError(f"the pages are stored, but their index or counts are behind: {troubles[0]}")


async def _take_back(jobs: RabbitmqJobs, names: QueueNames, store: CollectionStore) -> None:
    for body in await jobs.drain(names.fetch):
        order = read_message(ToFetch, body, names.collection)
        if order is not None:
            store.release(order.leases)


def _followers(folder: DataFolder, settings: Settings) -> list[Follower | FollowerTeam]:
    following: list[Follower | FollowerTeam] = [
        followers(folder, lambda shard: IndexerChild(shard, settings.index))
    ]
    if settings.trends.live:
        from levada.assemble.counting import CountChild  # a crawl that does not count need not load it

        following.append(followers(folder, CountChild))
    return following


async def _follow(
    store: CollectionStore, keeper: Storekeeper, following: Sequence[Follower | FollowerTeam]
) -> None:
    """The index and the counts follow what the catalog workers commit, on whatever machine and shard."""

    def newest() -> list[int]:
        return [shard.newest_seq() for shard in getattr(store, "shards", (store,))]

    last: list[int] = []
    while True:
        seen = await keeper.run(newest)
        if seen != last:
            for each in following:
                each.wake()
        last = seen
        await asyncio.sleep(_LOOK)


async def _learn(store: CollectionStore, keeper: Storekeeper, policy: RevisitPolicy) -> None:
    """What the workers stored meanwhile belongs to what is believed of all pages."""
    while True:
        await asyncio.sleep(_RELEARN)
        await keeper.run(remember_pages, policy, store)
