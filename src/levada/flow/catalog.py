"""The catalog step: visits in, one commit for all that have gathered.

A commit costs as much for one visit as for fifty, so a moment is left for some to gather; while a batch is on its
way to the disk the next one gathers anyway.
"""

from __future__ import annotations

import asyncio
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
        self._gathered: asyncio.Queue[Settled | None] = asyncio.Queue(maxsize=2 * self._batch)

    async def put(self, settled: Settled) -> None:
        await self._gathered.put(settled)

    def __len__(self) -> int:
        return self._gathered.qsize()

    async def finish(self) -> None:
        """Commit what has gathered, and end."""
        await self._gathered.put(None)

    async def run(self) -> None:
        """Until finished: an error of the store ends the crawl, for nothing can be done without it."""
        going_on = True
        while going_on:
            batch = [await self._gathered.get()]
            if batch[0] is not None and self._gathered.qsize() < self._batch:
                await self._clock.sleep(self._gather_seconds)
            while len(batch) < self._batch and not self._gathered.empty():
                batch.append(self._gathered.get_nowait())
            going_on = batch[-1] is not None  # nothing comes after the end
            await self._commit([settled for settled in batch if settled is not None])

    async def _commit(self, batch: Sequence[Settled]) -> None:
        accepted = await self._keeper.run(self._frontier.settle, batch)
        for settled, is_stored in zip(batch, accepted, strict=True):
            if is_stored:
                self._sieve.stored(settled.found)
        self._on_settled(batch, accepted)
