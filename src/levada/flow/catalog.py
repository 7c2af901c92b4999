"""The catalog step: visits in, one commit for all that have gathered.

A commit costs as much for one visit as for fifty, so a moment is left for some to gather; while a batch is on
its way to the disk the next one gathers anyway. How many can gather is bounded by how many pages are leased.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from levada.flow.settings import Settings
from levada.flow.sieve import LinkSieve
from levada.flow.storekeeper import Storekeeper
from levada.ports import Clock, Frontier
from levada.records import Settled

__all__ = ["CatalogStep"]


class CatalogStep:
    def __init__(
        self,
        frontier: Frontier,
        keeper: Storekeeper,
        sieve: LinkSieve,
        clock: Clock,
        settings: Settings,
        on_settled: Callable[[Sequence[Settled], Sequence[bool]], None],
    ) -> None:
        self._frontier = frontier
        self._keeper = keeper
        self._sieve = sieve
        self._clock = clock
        self._batch = settings.store.batch
        self._gather_seconds = settings.store.gather_seconds * settings.clock.speed
        self._on_settled = on_settled
        self._gathered: deque[Settled] = deque()
        self._news = asyncio.Event()
        self._ending = False

    def put(self, settled: Settled) -> None:
        self._gathered.append(settled)
        self._news.set()

    def __len__(self) -> int:
        return len(self._gathered)

    def finish(self) -> None:
        """Commit what has gathered, and end."""
        self._ending = True
        self._news.set()

    async def run(self) -> None:
        """Until finished: an error of the store ends the crawl, for nothing can be done without it."""
        while self._gathered or not self._ending:
            await self._news.wait()
            if not self._ending and len(self._gathered) < self._batch:
                await self._clock.sleep(self._gather_seconds)
            batch = [self._gathered.popleft() for _ in range(min(self._batch, len(self._gathered)))]
            if not self._gathered:
                self._news.clear()
            if batch:
                await self._commit(batch)

    async def _commit(self, batch: Sequence[Settled]) -> None:
        accepted = await self._keeper.run(self._frontier.settle, batch)
        for settled, is_stored in zip(batch, accepted, strict=True):
            if is_stored:
                self._sieve.stored(settled.found)
            else:
                self._sieve.withdraw(settled.found)
        self._on_settled(batch, accepted)
