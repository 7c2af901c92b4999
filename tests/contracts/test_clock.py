"""The clock contract, run on every clock."""

from __future__ import annotations

from levada.core.clock import CorrectedClock, ScaledClock, SystemClock
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


class TestCorrected(ClockContract):
    def make(self) -> Clock:
        clock = CorrectedClock(SystemClock())
        clock.correct(3_600.0)
        return clock


def test_a_corrected_clock_tells_the_time_of_the_other_machine() -> None:
    wrong = ManualClock(4_600.0)
    clock = CorrectedClock(wrong)
    clock.correct(3_600.0)
    assert clock.now() == 1_000.0
    wrong.advance(5.0)
    assert clock.now() == 1_005.0


def test_a_world_that_runs_faster_is_corrected_by_as_much_more() -> None:
    clock = CorrectedClock(ManualClock(50_000.0), speed=10.0)
    clock.correct(3_600.0)
    assert clock.now() == 14_000.0
