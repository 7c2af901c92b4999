"""Render slots: how many pages are rendered at the same time; the workers of the render stage.

A slot is a tab. When the last slot is taken away, because there was nothing to render for a while, the browser ends;
the next page gives one back.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from levada.scale.statistics import InProcessStatistics


class RenderSlots:
    """At most `most` of them. `on_empty` is called when none is left, and none is in use."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = most
        self.on_empty: Callable[[], None] = lambda: None
        self._under_way = self._arrived = self._done = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._work = 0.0
        self._since = time.monotonic()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a slot, and have it for as long as this block."""
        self._arrived += 1
        self.limit = max(1, self.limit)
        if self._under_way >= self.limit or self._waiting:
            await self._wait()
        else:
            self._take()
        try:
            yield
        finally:
            self._count_work()
            self._under_way -= 1
            self._done += 1
            self._admit()

    def poll(self) -> InProcessStatistics:
        self._count_work()
        return InProcessStatistics(
            queue=len(self._waiting),
            on=self.limit,
            busy=self._under_way,
            arrived=self._arrived,
            done=self._done,
            work=self._work,
        )

    def resize(self, wanted: int) -> None:
        """Have this many slots; pages that wait keep the last one."""
        needed = 1 if self._waiting or self._under_way else 0
        before, self.limit = self.limit, min(max(needed, wanted), self.most)
        self._admit()
        if before and not self.limit:
            self.on_empty()

    async def _wait(self) -> None:
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(admitted)
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():  # it has a slot already
                self._count_work()
                self._under_way -= 1
                self._admit()
            elif admitted in self._waiting:
                self._waiting.remove(admitted)
            raise

    def _admit(self) -> None:
        while self._waiting and self._under_way < self.limit:
            admitted = self._waiting.popleft()
            if not admitted.done():
                self._take()
                admitted.set_result(None)

    def _take(self) -> None:
        self._count_work()
        self._under_way += 1

    def _count_work(self) -> None:
        now = time.monotonic()
        self._work += self._under_way * (now - self._since)
        self._since = now
