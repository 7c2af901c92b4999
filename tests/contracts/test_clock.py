"""The clock contract, run on every clock."""

from __future__ import annotations

from levada.core.clock import ScaledClock, SystemClock
from levada.core.protocols import Clock
from levada.testing import ClockContract
from tests.manual_clock import ManualClock


class TestSystem(ClockContract):
    def make(self) -> Clock:
        return SystemClock()


class TestScaled(ClockContract):
    seconds = 5.0

    def make(self) -> Clock:
        return ScaledClock(500.0, origin=1_000_000.0)


class TestManual(ClockContract):
    def make(self) -> Clock:
        return ManualClock(100.0)

    async def pass_time(self, clock: Clock, seconds: float) -> None:
        assert isinstance(clock, ManualClock)
        clock.advance(seconds)
