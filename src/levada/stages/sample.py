"""What does a controller see of a stage? A row of floats, the same from a simulated queue and from a live one."""

from __future__ import annotations

import math

import msgspec

__all__ = [
    "ARRIVED",
    "BEFORE_BUSY",
    "BEFORE_DONE",
    "BEFORE_ON",
    "BEFORE_QUEUE",
    "BEFORE_RATE",
    "BEFORE_SERVICE",
    "BUSY",
    "CAPACITY",
    "DONE",
    "FIELDS",
    "HELD",
    "NOW",
    "ON",
    "QUEUE",
    "STARTING",
    "StageSample",
]

NOW, QUEUE, ON, BUSY, STARTING, ARRIVED, DONE, HELD, CAPACITY = range(9)
BEFORE_ON, BEFORE_QUEUE, BEFORE_BUSY, BEFORE_DONE, BEFORE_SERVICE, BEFORE_RATE = range(9, 15)
FIELDS = 15

_MOST = 1e15  # seconds, jobs or workers: more cannot be


class StageSample(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a stage. Counts of jobs run from the beginning; what lies before it is 0 for the first stage."""

    at: float
    queue: float
    on: float  # workers told to run, those that are still starting too
    busy: float  # jobs in work, those of workers that were told to stop too
    starting: float = 0.0
    arrived: float = 0.0  # jobs offered to the queue so far, those that it dropped too
    done: float = 0.0
    held: float = 0.0  # seconds so far during which the source was held back
    capacity: float = math.inf
    before_on: float = 0.0  # workers of the stage before, as it has just been told
    before_queue: float = 0.0
    before_busy: float = 0.0
    before_done: float = 0.0
    before_service: float = 0.0  # seconds per job there, as its controller believes; 0 if nobody knows
    before_rate: float = 0.0  # jobs per second that would arrive there if nothing were held back, likewise

    @property
    def row(self) -> list[float]:
        """In the order of the constants above."""
        return [float(value) for value in msgspec.structs.astuple(self)]

    @property
    def is_sound(self) -> bool:
        at, *others = self.row
        capacity = others.pop(CAPACITY - 1)
        return abs(at) <= _MOST and capacity > 0.0 and all(0.0 <= value <= _MOST for value in others)
