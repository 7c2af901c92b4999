"""Site ownership: which sites this scheduler hands out, of those that several schedulers of one collection share.

Every site lies in one of 64 slices, by a hash of its name, and every slice has one owner. A scheduler renews its hold
once a second; a hold that is not renewed ends after some seconds, by the clock of the server that keeps the table, and
the others take its slices over. A scheduler trusts its own hold only as long as the server does at least: from the
moment when it asked. What it hands out carries that moment, and no worker begins a page later. So no site is asked by
two, even if a scheduler stood still and does not know that it was replaced. What one hold gains or gives up raises
the epoch of the slice.

A scheduler with more than its share gives slices up: it hands out none of their pages any more, waits for the answers
that are due, and then lets go. Whoever gains a slice waits for the delay of each of its sites first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Protocol

from levada.core.errors import StoreError
from levada.core.protocols import Clock
from levada.crawl.executor import StoreExecutor
from levada.store.ownership import SLICES, Holds, OwnershipTable, slice_of

log = logging.getLogger(__name__)

HOLD = 6.0  # seconds of the wall for which a renewal holds
BEAT = 1.0  # seconds of the wall between two renewals
SAFETY = 0.25  # seconds of the wall before its end in which nothing is handed out
_NEVER = float("-inf")


class Scheduling(Protocol):
    """What a change of hands means to the scheduler."""

    def sites_gained(self, slices: Collection[int]) -> None:
        """Ask their sites after their delay at the earliest."""
        ...

    def sites_lost(self, slices: Collection[int]) -> None:
        """Give back the pages of their sites that wait."""
        ...

    def slices_under_way(self) -> set[int]:
        """Those with a request that has no answer yet."""
        ...

    def share_changed(self, share: float) -> None: ...

    def orphans(self, slices: Collection[int]) -> None:
        """End the leases in these slices soon: who held them is gone."""
        ...


class SiteOwnership:
    """The slices that a scheduler holds. `run` renews the hold until it is cancelled; `speed` is that of the clock."""

    def __init__(
        self,
        table: OwnershipTable,
        name: str,
        executor: StoreExecutor,
        clock: Clock,
        *,
        speed: float = 1.0,
        on_trouble: Callable[[str], None] = lambda trouble: None,
    ) -> None:
        self.name = name
        self._table = table
        self._executor = executor
        self._clock = clock
        self._speed = speed
        self._on_trouble = on_trouble
        self._held: dict[int, tuple[int, float]] = {}  # slice: epoch, and since when
        self._giving: frozenset[int] = frozenset()
        self._good_until = _NEVER  # of the monotonic clock
        self._schedulers = 0

    @property
    def remaining(self) -> float:
        """Seconds of the wall for which what is handed out now may be fetched."""
        return max(0.0, (self._good_until - self._clock.monotonic()) / self._speed - SAFETY)

    @property
    def slices(self) -> frozenset[int]:
        """Those whose pages may be handed out now."""
        return frozenset(self._held) - self._giving if self.remaining else frozenset()

    @property
    def share(self) -> float:
        return len(self._held) / SLICES

    def owns(self, site: str) -> bool:
        number = slice_of(site)
        return number in self._held and number not in self._giving and self.remaining > 0.0

    def since(self, site: str) -> float:
        """Since when its slice is held; a time long ago if it is not."""
        return self._held.get(slice_of(site), (0, _NEVER))[1]

    async def run(self, scheduling: Scheduling) -> None:
        try:
            while True:
                await self.renew(scheduling)
                await self._clock.sleep(BEAT * self._speed)
        finally:
            self._good_until = _NEVER

    async def renew(self, scheduling: Scheduling) -> None:
        """Renew the hold once, and tell the scheduler what has changed."""
        asked = self._clock.monotonic()
        released = self._giving - scheduling.slices_under_way()
        try:
            holds = await self._executor.run(self._table.renew, self.name, released, HOLD)
        except StoreError as error:
            self._on_trouble(str(error))
            return
        self._on_trouble("")
        gained, lost = self._apply(holds)
        self._good_until = asked + HOLD * self._speed
        self._giving = frozenset(holds.give)
        if away := lost | self._giving:
            scheduling.sites_lost(away)
        if gained:
            scheduling.sites_gained(gained)
        if gained or lost or holds.schedulers != self._schedulers:
            self._schedulers = holds.schedulers
            scheduling.share_changed(self.share)
            others = holds.schedulers - 1
            beside = f", beside {others} other{'s' if others > 1 else ''}" if others else ""
            log.info("this control owns %d of %d slices of the sites%s", len(self._held), SLICES, beside)
        if holds.orphaned:
            scheduling.orphans(holds.orphaned)

    def _apply(self, holds: Holds) -> tuple[set[int], set[int]]:
        """The slices gained and lost: another epoch means that somebody else had it meanwhile."""
        now = self._clock.now()
        gained = {number for number, epoch in holds.owned.items() if self._held.get(number, (None,))[0] != epoch}
        lost = self._held.keys() - holds.owned.keys()
        self._held = {
            number: (epoch, now) if number in gained else self._held[number] for number, epoch in holds.owned.items()
        }
        return gained, set(lost)

    async def leave(self) -> None:
        """Let others take over at once; only if nothing that was handed out can still be fetched."""
        self._good_until = _NEVER
        try:
            await self._executor.run(self._table.leave, self.name)
        except StoreError as error:
            log.debug("the hold ends by itself: %s", error)
