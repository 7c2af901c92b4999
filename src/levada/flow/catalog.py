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
        on_committed: Callable[[Sequence[Settled]], None],
    ) -> None:
        self._frontier = frontier
        self._keeper = keeper
        self._sieve = sieve
        self._batch = batch
        self._on_committed = on_committed
        self._gathered: asyncio.Queue[Settled] = asyncio.Queue(maxsize=2 * batch)

    async def put(self, settled: Settled) -> None:
        await self._gathered.put(settled)

    def __len__(self) -> int:
        return self._gathered.qsize()

    async def run(self) -> None:
        """For ever: an error of the store ends the crawl, for nothing can be done without it."""
        while True:
            batch = [await self._gathered.get()]
            while len(batch) < self._batch and not self._gathered.empty():
                batch.append(self._gathered.get_nowait())
            await self.commit(batch)

    async def commit(self, batch: Sequence[Settled]) -> None:
        accepted = await self._keeper.run(self._frontier.settle, batch)
        committed = [settled for settled, ok in zip(batch, accepted, strict=True) if ok]
        for settled in committed:
            self._sieve.stored(settled.found)
        self._on_committed(committed)
