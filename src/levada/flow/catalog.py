"""The catalog step: visits in, one commit for all that have gathered.

While one batch is on its way to the disk the next one gathers, so the slower the disk, the larger the batch: the
commit's cost is shared without anybody waiting for a timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from levada.flow.sieve import LinkSieve
from levada.flow.storekeeper import Storekeeper
from levada.ports import Frontier
from levada.records import Settled

__all__ = ["CatalogStep"]


class CatalogStep:
    def __init__(
        self,
        frontier: Frontier,
        keeper: Storekeeper,
        sieve: LinkSieve,
        batch: int,
        on_settled: Callable[[Sequence[Settled], Sequence[bool]], None],
    ) -> None:
        self._frontier = frontier
        self._keeper = keeper
        self._sieve = sieve
        self._batch = batch
        self._on_settled = on_settled
        self._gathered: asyncio.Queue[Settled | None] = asyncio.Queue(maxsize=2 * batch)

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
