"""Contract suite of the clock: the time of a crawl."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from math import isfinite

import pytest

from levada.core.protocols import Clock
from levada.testing.common import in_loop

_EARLY = 0.99  # an event loop may wake a sleeper one tick early


class ClockContract:
    """Time goes forward, and a sleep lasts as long as the clock itself says.

    ```python
    class TestMyClock(ClockContract):
        def make(self) -> Clock:
            return MyClock()
    ```
    """

    seconds = 0.01
    """How long the sleeps of the suite last, by the clock."""

    def make(self) -> Clock:
        raise NotImplementedError

    async def pass_time(self, clock: Clock, seconds: float) -> None:
        """Let time pass; override it for a clock that is set by hand."""
        await clock.sleep(seconds)

    def test_both_readings_are_finite_and_monotonic_time_never_goes_back(self) -> None:
        clock = self.make()
        assert isfinite(clock.now())
        readings = [clock.monotonic() for _ in range(1_000)]
        assert readings == sorted(readings)
        assert all(map(isfinite, readings))

    @pytest.mark.parametrize("seconds", [0.0, -1.0, -1e9])
    def test_no_time_at_all_is_slept_at_once(self, seconds: float) -> None:
        asyncio.run(self.make().sleep(seconds))

    @in_loop
    async def test_a_sleep_lasts_at_least_its_time(self) -> None:
        clock = self.make()
        began = clock.monotonic()
        sleeper = asyncio.ensure_future(clock.sleep(self.seconds))
        await asyncio.sleep(0)
        await self.pass_time(clock, self.seconds)
        await sleeper
        assert clock.monotonic() - began >= _EARLY * self.seconds

    @in_loop
    async def test_time_passes_alike_on_both_readings(self) -> None:
        clock = self.make()
        now, monotonic = clock.now(), clock.monotonic()
        await self.pass_time(clock, self.seconds)
        passed = (clock.now() - now) / (clock.monotonic() - monotonic)
        assert 0.5 < passed < 2.0

    @in_loop
    async def test_sleepers_wake_in_the_order_of_their_times(self) -> None:
        clock, woken = self.make(), list[int]()

        async def sleep(times: int) -> None:
            await clock.sleep(times * self.seconds)
            woken.append(times)

        sleepers = [asyncio.ensure_future(sleep(times)) for times in (3, 1, 2)]
        await asyncio.sleep(0)
        for _ in range(3):
            await self.pass_time(clock, self.seconds)
            await asyncio.sleep(0)
        await asyncio.gather(*sleepers)
        assert woken == [1, 2, 3]

    @in_loop
    async def test_a_cancelled_sleep_disturbs_no_other(self) -> None:
        clock = self.make()
        cancelled, other = (asyncio.ensure_future(clock.sleep(self.seconds)) for _ in range(2))
        await asyncio.sleep(0)
        cancelled.cancel()
        with suppress(asyncio.CancelledError):
            await cancelled
        await self.pass_time(clock, self.seconds)
        await other
