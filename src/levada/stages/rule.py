"""Sizing rules: a step from the sample of a stage to its number of workers.

A rule is plain arithmetic over a row of floats per stage, so that the same function runs on live queues and,
compiled, in the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence

import msgspec

from levada.core.errors import UsageError

LEAST, MOST, PERIOD, STARTUP, OWN = range(5)
"""The first parameters of every rule: least and most workers, seconds between samples, seconds that a worker takes
to start; its own parameters follow."""

SERVICE, RATE = range(2)
"""Where a rule keeps, in its memory, the estimated seconds per job and the jobs per second that would arrive if
nothing were held; 0 if unknown."""

SizingStep = Callable[[MutableSequence[float], Sequence[float], Sequence[float]], float]
"""`step(memory, parameters, sample)`: the wanted workers, a whole number. It rewrites `memory` (zeros at first) in
place. It uses only floats, loops and `math`, because the laboratory compiles it."""

_MOST_WORKERS = 100_000


class SizingRule(msgspec.Struct, frozen=True):
    """A named rule for one stage; `width` floats of memory."""

    name: str
    step: SizingStep
    width: int
    parameters: tuple[float, ...]

    @property
    def least(self) -> int:
        return int(self.parameters[LEAST])

    @property
    def most(self) -> int:
        return int(self.parameters[MOST])

    @property
    def period(self) -> float:
        return self.parameters[PERIOD]

    @property
    def startup(self) -> float:
        return self.parameters[STARTUP]


def sizing_rule(
    name: str,
    step: SizingStep,
    limits: tuple[int, int],
    period: float,
    own: Sequence[float] = (),
    *,
    startup: float = 0.0,
    width: int = 2,
) -> SizingRule:
    """Check the common parameters and make a rule."""
    least, most = limits
    if not 0 <= least <= most <= _MOST_WORKERS or most < 1:
        raise UsageError(
            f"{name}: workers must be 0 <= least <= most and 1 <= most <= {_MOST_WORKERS}, not {least} to {most}"
        )
    if not 0.001 <= period <= 86_400.0:
        raise UsageError(f"{name}: the period must be between 0.001 and 86400 s, not {period}")
    if not 0.0 <= startup <= 86_400.0:
        raise UsageError(f"{name}: the start-up must be between 0 and 86400 s, not {startup}")
    return SizingRule(name, step, width, (float(least), float(most), period, startup, *map(float, own)))


def within(wanted: float, parameters: Sequence[float]) -> float:
    """The number of workers between the limits."""
    return min(max(wanted, parameters[LEAST]), parameters[MOST])
