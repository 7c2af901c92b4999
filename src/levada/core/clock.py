"""Clocks: the only module that reads the machine's time.

`now` is the time of the crawled world, in float seconds since the epoch. It can run faster than wall-clock time
(`ScaledClock`, the bundled web at 500x) or stand still until it is advanced (`ManualClock`, tests). `monotonic`
counts the same seconds as `now`, but never jumps back. Limits on sockets and child processes are not world time:
they are in the machine's seconds, inside the adapters that enforce them.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from levada.core.protocols import Clock
    from levada.core.settings import ClockSettings


class SystemClock:
    """The time of the machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await _pass(max(0.0, seconds))


class ScaledClock:
    """A world `speed` times as fast as the wall clock, from `origin` (world) at `started` (wall clock)."""

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
    """Time that moves only by `advance`."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the time forward and wake the sleepers whose time has come."""
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
        """The time at which the next sleeper wakes."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None


async def _pass(seconds: float) -> None:
    import asyncio  # here: a program that only reads the time need not load it

    await asyncio.sleep(seconds)


async def first_of(event: asyncio.Event, sleep: Coroutine[None, None, None]) -> None:
    """Wait for the event or the end of the sleep."""
    import asyncio

    waits = (asyncio.ensure_future(sleep), asyncio.ensure_future(event.wait()))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


def make_clock(settings: ClockSettings) -> Clock:
    """The clock that the settings ask for."""
    if settings.speed == 1.0 and not settings.started:
        return SystemClock()
    return ScaledClock(settings.speed, settings.origin, settings.started)
