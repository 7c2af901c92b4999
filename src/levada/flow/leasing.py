"""The leasing step: how many pages to take, is anything left to wait for, and for how long?"""

from __future__ import annotations

from levada.flow.crawl_ports import CrawlPorts
from levada.flow.settings import Settings
from levada.flow.storekeeper import Storekeeper
from levada.records import Lease, Standing

__all__ = ["LOOK", "LeasingStep"]

LOOK = 60.0
"""At least so often the frontier is asked, in case others write too."""

_TICK = 0.02  # seconds of the wall: nothing is looked at more often


class LeasingStep:
    """`cutoff` is for a crawl that goes once: what becomes due later is not for it."""

    def __init__(
        self,
        ports: CrawlPorts,
        keeper: Storekeeper,
        settings: Settings,
        *,
        cutoff: float | None = None,
        max_pages: int | None = None,
    ) -> None:
        self.begun = 0  # visits
        self.worth_waiting = 0.0  # until then a crawl that goes once waits for a site that asked for patience
        self._frontier = ports.frontier
        self._clock = ports.clock
        self._keeper = keeper
        self._slots = settings.fetch.slots
        self._tick = _TICK * settings.clock.speed
        self._seconds = settings.store.lease_seconds * max(1.0, settings.clock.speed)
        self._cutoff = cutoff
        self._max_pages = max_pages

    @property
    def reached_limit(self) -> bool:
        return self._max_pages is not None and self.begun >= self._max_pages

    def room(self, waiting: int, held: int, per_hour: float) -> int:
        """How many pages to lease: enough to keep busy, no more than can be asked for before a lease ends."""
        if waiting >= self._slots or held >= 6 * self._slots:
            return 0
        room = 4 * self._slots - waiting
        if per_hour:
            room = min(room, 1 + int(per_hour * self._seconds / 3600) - waiting)
        if self._max_pages is not None:
            room = min(room, self._max_pages - self.begun - waiting)
        return max(0, room)

    async def lease(self, room: int) -> list[Lease]:
        now = self._clock.now()
        return await self._keeper.run(self._frontier.lease, now, room, self._seconds, self._cutoff)

    async def is_done(self) -> bool:
        """Nothing is under way: is there anything left that this crawl should wait for?"""
        if self.reached_limit:
            return True
        if self._cutoff is None or self._clock.now() <= self.worth_waiting:
            return False
        standing = await self._keeper.run(self._frontier.standing, self._cutoff)
        return not standing.workable

    async def standing(self) -> Standing:
        return await self._keeper.run(self._frontier.standing, self._clock.now())

    def until_due(self, standing: Standing) -> float:
        """How long nothing can be leased unless there is news."""
        now, next_due = self._clock.now(), standing.next_due
        if next_due is not None and next_due <= now:
            return 25 * self._tick  # due, but not for this crawl
        return LOOK if next_due is None else min(LOOK, max(self._tick, next_due - now))
