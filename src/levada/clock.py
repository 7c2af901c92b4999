"""What time is it? The only module that reads the machine's clock.

`now` is the time of the world that is crawled: float seconds since the epoch. It can run faster than the wall
(`ScaledClock`, the bundled web at 500x) or stand still until told (`ManualClock`, tests). `monotonic` is always
in the same seconds as `now`, but never jumps back. Limits on sockets and child processes are not world time:
they stay in the machine's own seconds, inside the adapters that hold them.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

__all__ = ["ManualClock", "ScaledClock", "SystemClock"]


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await _pass(max(0.0, seconds))


class ScaledClock:
    """A world that runs `speed` times as fast as the wall, from `origin` (world) at `started` (wall)."""

    def __init__(self, speed: float, origin: float, started: float | None = None) -> None:
        if not speed > 0:
            raise ValueError(f"speed must be above 0, not {speed}")
        self.speed = speed
        self.origin = origin
        self.started = time.time() if started is None else started
        self._offset = self.now() - time.monotonic() * speed

    def now(self) -> float:
        return self.origin + (time.time() - self.started) * self.speed

    def monotonic(self) -> float:
        return self._offset + time.monotonic() * self.speed

    async def sleep(self, seconds: float) -> None:
        await _pass(max(0.0, seconds) / self.speed)


class ManualClock:
    """Time that moves only when told, or when everybody sleeps (`run_until_idle`)."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on, waking whoever's sleep ends on the way."""
        self._now += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, sleeper = heapq.heappop(self._sleepers)
            if not sleeper.done():
                sleeper.set_result(None)

    async def sleep(self, seconds: float) -> None:
        import asyncio

        if seconds <= 0:
            await _pass(0.0)
            return
        sleeper = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._now + seconds, self._count, sleeper))
        await sleeper

    def next_wake(self) -> float | None:
        """When the next sleeper wants to be woken."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None


async def _pass(seconds: float) -> None:
    import asyncio  # here: who only asks what time it is need not wait for it to load

    await asyncio.sleep(seconds)
