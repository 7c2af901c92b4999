"""Stage sample: what a controller sees of a stage at one moment, simulated or live, as a row of floats."""

from __future__ import annotations

import math

import msgspec

NOW, QUEUE, ON, BUSY, STARTING, ARRIVED, DONE, HELD, CAPACITY = range(9)
BEFORE_ON, BEFORE_QUEUE, BEFORE_BUSY, BEFORE_DONE, BEFORE_SERVICE, BEFORE_RATE = range(9, 15)
FIELDS = 15

_MOST = 1e15  # seconds, jobs or workers that are possible


class StageSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample of a stage. Job counts run from the beginning; the `before` fields are 0 for the first stage."""

    at: float
    queue: float
    on: float  # workers told to run, including those still starting
    busy: float  # jobs in work, including those of workers told to stop
    starting: float = 0.0
    arrived: float = 0.0  # jobs offered to the queue so far, including those that it dropped
    done: float = 0.0
    held: float = 0.0  # seconds so far during which the source was held
    capacity: float = math.inf
    before_on: float = 0.0  # workers of the stage before, by its new decision
    before_queue: float = 0.0
    before_busy: float = 0.0
    before_done: float = 0.0
    before_service: float = 0.0  # estimated seconds per job there; 0 if unknown
    before_rate: float = 0.0  # jobs per second that would arrive there if nothing were held; 0 if unknown

    @property
    def row(self) -> list[float]:
        """The fields in the order of the constants above."""
        return [float(value) for value in msgspec.structs.astuple(self)]

    @property
    def is_sound(self) -> bool:
        at, *others = self.row
        capacity = others.pop(CAPACITY - 1)
        return abs(at) <= _MOST and capacity > 0.0 and all(0.0 <= value <= _MOST for value in others)
