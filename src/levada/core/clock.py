"""Clocks: the only module that reads the machine's time.

`now` is the time of the crawled world, in float seconds since the epoch. It can run faster than wall-clock time
(`ScaledClock`, the bundled web at 500x). `monotonic` counts the same seconds as `now`, but never jumps back. Limits on
sockets and child processes are not world time: they are in the machine's seconds, inside the adapters that enforce
them.
"""

from __future__ import annotations

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


class CorrectedClock:
    """A clock by the time of another machine, so that a wrong clock of this one postpones no visit.

    What processes tell each other in points of time (when a lease ends, when a page was visited) is compared by
    others. `correct` says how far this machine's clock is ahead of the one that all go by.
    """

    def __init__(self, clock: Clock, speed: float = 1.0) -> None:
        self._clock = clock
        self._speed = speed
        self._ahead = 0.0

    def correct(self, ahead: float) -> None:
        self._ahead = ahead * self._speed

    def now(self) -> float:
        return self._clock.now() - self._ahead

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


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
