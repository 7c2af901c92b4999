"""Crawl engine: the scheduler over a transport, replanning, live status and progress."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Protocol

from levada.core.records import CollectionStats
from levada.core.reports import Report, StageView
from levada.core.settings import Settings
from levada.crawl.change_hints import ReplanningStep
from levada.crawl.commits import CrawlPorts
from levada.crawl.executor import StoreExecutor
from levada.crawl.politeness import PolitenessQueue
from levada.crawl.progress import CrawlProgress
from levada.crawl.scheduler import Scheduler
from levada.crawl.transport import Transport, UnderWay

_REPLAN_PAUSE = 0.2  # wall-clock seconds: replanning takes a small part of a core
_WATCH = 0.5  # wall-clock seconds between two reads of the collection statistics


class StatusBoard(Protocol):
    """Shows the state of a crawl to other processes until it is cancelled."""

    async def run(self, crawl: Crawl) -> None: ...


class Crawl:
    """A crawl of one collection, on one machine or, by its transport, on several.

    `only` are the pages to visit, whenever they are due (see `Scheduler`).

    `watch` is the number of seconds between two reads of the collection statistics, None for none. The work in
    `beside` runs until the crawl ends; an error there ends the crawl.
    """

    def __init__(
        self,
        ports: CrawlPorts,
        settings: Settings,
        transport: Transport,
        *,
        once: bool = False,
        max_pages: int | None = None,
        only: Sequence[str] | None = None,
        alone: bool = True,
        executor: StoreExecutor | None = None,
        watch: float | None = _WATCH,
        board: StatusBoard | None = None,
        beside: Sequence[Callable[[], Coroutine[None, None, None]]] = (),
    ) -> None:
        self.clock = ports.clock
        self.speed = settings.clock.speed
        self.progress = CrawlProgress(ports.clock.now(), ports.policy.estimates)
        self.stats = CollectionStats()
        self._ports = ports
        self._transport = transport
        self._once = once
        self._executor = executor or StoreExecutor()
        self._watch_seconds = watch
        self._board = board
        self._others = beside
        self._scheduler = Scheduler(
            ports,
            settings,
            transport,
            self._executor,
            self.progress,
            once=once,
            max_pages=max_pages,
            only=only,
            alone=alone,
        )

    @property
    def politeness_queue(self) -> PolitenessQueue:
        return self._scheduler.politeness_queue

    @property
    def under_way(self) -> UnderWay:
        return self._transport.under_way()

    @property
    def paused(self) -> bool:
        return self._scheduler.paused

    @property
    def held(self) -> bool:
        """Whether leasing waits because a queue is full."""
        return self._transport.held

    @property
    def per_hour(self) -> int:
        """The current budget; 0: none."""
        return self._scheduler.per_hour

    @property
    def offline(self) -> float | None:
        """Since when nothing answers, because the network is down; None while something does."""
        return self._scheduler.network.down

    def stage_views(self) -> tuple[StageView, ...]:
        return self._transport.stage_views()

    def stop(self, why: str = "interrupted") -> None:
        """End soon and in order: release the waiting leases, and commit or send what has gathered."""
        self._executor.give_up()
        if self._ports.overview is not None:
            self._ports.overview.executor.give_up()
        self._scheduler.stop(why)

    async def run(self) -> Report:
        """Run until stopped or, with `once`, until every due page is visited."""
        try:
            await self._scheduler.run(self._beside())
            stats = await self._scheduler.stats()
        finally:
            self._executor.close()
        now = self.clock.now()
        return self.progress.report(stats, now, self._scheduler.stopped, await self._transport.summary())

    def _beside(self) -> Iterator[Coroutine[None, None, None]]:
        if self._watch_seconds is not None:
            yield self._watch(self._watch_seconds * self.speed)
        if not self._once:
            ports, pause = self._ports, _REPLAN_PAUSE * self.speed
            yield ReplanningStep(
                ports.page_sample,
                ports.hints,
                ports.policy,
                self._executor,
                self.clock,
                pause,
                self._scheduler.own_floor,
                ports.overview.executor if ports.overview is not None else None,
            ).run()
        if self._board is not None:
            yield self._board.run(self)
        yield from (work() for work in self._others)

    async def _watch(self, seconds: float) -> None:
        """Keep `stats` up to date."""
        while True:
            self.stats = await self._scheduler.stats()
            await self.clock.sleep(seconds)
