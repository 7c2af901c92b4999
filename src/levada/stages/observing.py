"""What is a sample of a live stage made of, from what can be seen of it?

Workers that tell what they took and did leave nothing to guess. Of others only the queue is seen: while jobs wait,
all its consumers are busy; while none waits, nobody knows how many are idle. Then fewer and fewer are believed to
be busy, until jobs wait again. Where nobody consumes, workers are still starting, or they poll: as many are
believed to be busy as jobs have left the queue. As many jobs as workers times seconds of work is all that a rule
needs to know, so the seconds may be assumed: wrong ones make it slower or quicker to empty a queue, not wrong in
size.
"""

from __future__ import annotations

import math

from levada.errors import UsageError
from levada.stages.looks import CrewLook, QueueLook, WorkLook
from levada.stages.sample import StageSample

__all__ = ["StageObserver"]

_EASE = 30.0  # seconds in which belief in busy workers falls to a third while no job waits
_SHORT = 2.0  # seconds for which counts may seem to shrink, because two looks are never at one instant


class StageObserver:
    """`capacity` of the queue, if it has one; `assumed` seconds per job of workers that tell nothing."""

    def __init__(self, capacity: float = math.inf, assumed: float = 1.0) -> None:
        if not capacity > 0.0 or not 0.0 < assumed < math.inf:
            raise UsageError("a queue's capacity and the assumed seconds per job must be above 0")
        self._capacity = capacity
        self._assumed = assumed
        self._ease = max(_EASE, 10.0 * assumed)
        self._busy = 0.0
        self._worked = 0.0
        self._waiting = self._consumers = 0.0  # at the last look
        self._last: float | None = None
        self._is_told = False
        self._offset = self._done_offset = 0.0
        self._arrived = self._done = 0.0
        self._short_since: float | None = None

    def sample(
        self, at: float, queue: QueueLook | None, crew: CrewLook, work: WorkLook | None, held: float = 0.0
    ) -> StageSample:
        """Without a queue a sample that no controller believes: it holds its size."""
        if queue is None or not _is_sound(queue):
            return StageSample(at=at, queue=math.nan, on=float(crew.on), busy=math.nan)
        if work is None:
            busy, done, taken = self._guessed(at, queue, crew)
        else:
            busy, done, taken = float(work.busy), float(work.done), float(work.taken)
        self._last = at
        if self._is_told is not (work is not None):  # counts go on from where the others were
            self._is_told = work is not None
            self._offset = self._arrived - taken - queue.waiting
            self._done_offset = self._done - done
        self._done = max(self._done, done + self._done_offset)
        return StageSample(
            at=at,
            queue=float(queue.waiting),
            on=float(crew.on),
            busy=busy,
            starting=min(float(crew.starting), max(0.0, crew.on - queue.consumers)),
            arrived=self._counted(at, taken + queue.waiting),
            done=self._done,
            held=held,
            capacity=self._capacity,
        )

    def _guessed(self, at: float, queue: QueueLook, crew: CrewLook) -> tuple[float, float, float]:
        elapsed = max(0.0, at - self._last) if self._last is not None else 0.0
        if self._last is not None:
            self._busy = self._believed(elapsed, queue, max(0, crew.on))
        elif queue.consumers:
            self._busy = float(queue.consumers)
        else:  # nobody knows: as many as keep the stage at its size
            self._busy = max(0.0, crew.on - crew.starting - queue.waiting)
        self._waiting, self._consumers = queue.waiting, queue.consumers
        self._worked += self._busy * elapsed / self._assumed
        return self._busy, self._worked, self._worked + self._busy

    def _believed(self, elapsed: float, queue: QueueLook, on: int) -> float:
        """Whoever came since the last look is busy only with a job that has left the queue since."""
        left = max(0.0, self._waiting - queue.waiting)
        if queue.consumers and queue.waiting > 0:
            return min(queue.consumers, self._consumers + left)
        kept = self._busy * math.exp(-elapsed / self._ease)
        if queue.consumers:
            return min(kept + min(left, max(0.0, queue.consumers - self._busy)), queue.consumers)
        if self._consumers:  # they are gone, and what they had waits again
            kept = 0.0
        return min(kept + left, on)

    def _counted(self, at: float, arrived: float) -> float:
        """Never less than before: what is short for longer was taken out of the queue by others."""
        arrived += self._offset
        if arrived >= self._arrived:
            self._short_since = None
        elif self._short_since is None:
            self._short_since = at
        elif at - self._short_since > _SHORT:
            self._offset += self._arrived - arrived
            self._short_since = None
        self._arrived = max(self._arrived, arrived)
        return self._arrived


def _is_sound(queue: QueueLook) -> bool:
    return 0.0 <= queue.waiting < math.inf and 0.0 <= queue.consumers < math.inf
