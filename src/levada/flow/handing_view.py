"""How does a crawl on several machines stand just now? Seen by the one process that hands out its pages."""

from __future__ import annotations

import math

from levada.flow.control import Round
from levada.flow.fetch import Fetched
from levada.flow.progress import Progress
from levada.flow.scheduling import Scheduler
from levada.flow.staffing import StageView
from levada.flow.storekeeper import Storekeeper
from levada.ports import Beliefs, Clock, Frontier
from levada.records import Standing

__all__ = ["HandingView"]

_WATCH = 1.0  # seconds of the wall between two looks at the whole collection


class HandingView:
    """Visits are counted as they are answered: whether they are stored, the workers know; `standing` shows it."""

    def __init__(self, clock: Clock, speed: float, beliefs: Beliefs) -> None:
        self.clock = clock
        self.speed = speed
        self.progress = Progress(clock.now(), beliefs)
        self.standing = Standing()
        self._scheduler: Scheduler | None = None
        self._stages: tuple[StageView, ...] = ()

    @property
    def per_hour(self) -> int:
        return self._scheduler.per_hour if self._scheduler is not None else 0

    @property
    def paused(self) -> bool:
        return self._scheduler is not None and self._scheduler.paused

    @property
    def held(self) -> bool:
        return self._scheduler is not None and self._scheduler.held

    def stage_views(self) -> tuple[StageView, ...]:
        return self._stages

    def answered(self, fetched: Fetched) -> None:
        self.progress.visits += 1
        self.progress.fetched += fetched.response is not None
        reason = fetched.refused if fetched.response is None else fetched.response.reason
        if reason is not None:
            self.progress.failed[reason] += 1

    def decided(self, done: Round) -> None:
        """What the controller saw and decided."""
        self._stages = tuple(
            StageView(each.stage, _whole(each.queue), _whole(each.busy), max(0, each.on), 0, each.wanted, each.why)
            for each in done.stages
        )

    async def watch(self, scheduler: Scheduler, frontier: Frontier, keeper: Storekeeper) -> None:
        """Until cancelled."""
        self._scheduler = scheduler
        while True:
            self.standing = await keeper.run(frontier.standing, self.clock.now())
            await self.clock.sleep(_WATCH * self.speed)


def _whole(number: float | None) -> int:
    return int(number) if number is not None and math.isfinite(number) else 0
