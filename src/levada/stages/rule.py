"""What is a rule of sizing? A step from what a stage shows to the workers that it should have.

A rule is plain arithmetic over a row of floats that it keeps per stage, so that one and the same function runs
beside live queues as it stands and, compiled, in the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence

import msgspec

from levada.errors import UsageError

__all__ = [
    "LEAST",
    "MOST",
    "OWN",
    "PERIOD",
    "RATE",
    "SERVICE",
    "STARTUP",
    "SizingRule",
    "SizingStep",
    "sizing_rule",
    "within",
]

LEAST, MOST, PERIOD, STARTUP, OWN = range(5)
"""Where every rule's parameters begin: least and most workers, seconds between samples, seconds that a worker takes
to start; its own follow."""

SERVICE, RATE = range(2)
"""Where in its memory a rule keeps the seconds per job that it believes in, and the jobs per second that would
arrive if nothing were held back; 0 as long as it does not know."""

SizingStep = Callable[[MutableSequence[float], Sequence[float], Sequence[float]], float]
"""`step(memory, parameters, sample)`: the workers wanted, a whole number. It rewrites `memory` (zeros at first) in
place. Nothing but floats, loops and `math`: it is compiled by the laboratory."""

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
    """Checked: every rule of every controller is made here."""
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
