"""Stage sampler: turns the statistics of a live stage into the sample for its sizing rule.

A pool in the same process counts its jobs and the seconds that it worked on them. At a broker, workers may report
what they took and did. Where they do not, only the queue is visible, and the number of busy workers is estimated.
"""

from __future__ import annotations

import math

from levada.core.errors import UsageError
from levada.scale.statistics import InProcessStatistics, JobStatistics, PoolStatistics, QueueStatistics
from levada.stages.sample import StageSample

_SMOOTHING = 1.0  # seconds over which counts are smoothed
_DECAY = 30.0  # seconds in which the estimate of busy workers falls to a third while no job waits
_SHORT = 2.0  # seconds for which counts may seem to shrink, because two statistics are never of one instant

_Counts = tuple[float, float, float]  # arrived, done, work


class StageSampler:
    """The samples of one stage.

    `capacity` is that of the queue at the broker, if it is limited. `assumed` is the number of seconds per job for
    workers that report nothing. A rule only needs the number of workers times the seconds of work, so a wrong
    assumption makes it slower or quicker to drain a queue; the final size stays right.
    """

    def __init__(self, capacity: float = math.inf, assumed: float = 1.0) -> None:
        if not capacity > 0.0 or not 0.0 < assumed < math.inf:
            raise UsageError("a queue's capacity and the assumed seconds per job must be above 0")
        self._measured = _MeasuredJobs()
        self._queued = _QueuedJobs(capacity, assumed)

    @property
    def worked_at(self) -> float:
        """When an in-process pool last had a job."""
        return self._measured.worked_at

    def sample(
        self,
        at: float,
        pool: PoolStatistics,
        queue: QueueStatistics | None = None,
        jobs: JobStatistics | None = None,
        held: float = 0.0,
    ) -> StageSample:
        """The sample of a stage; unsound if the queue is unknown, so that the controller keeps its size."""
        if isinstance(pool, InProcessStatistics):
            return self._measured.sample(at, pool, held)
        if queue is None or not (0.0 <= queue.waiting < math.inf and 0.0 <= queue.consumers < math.inf):
            return StageSample(at=at, queue=math.nan, on=float(pool.on), busy=math.nan)
        return self._queued.sample(at, pool, queue, jobs, held)


class _MeasuredJobs:
    """Jobs counted by the pool itself.

    Pages come and go in batches (leases, commits), so counts are smoothed over a second: controllers would take
    every batch for a change of the load. Busy is the mean number of workers that worked since the last sample, so
    service times follow from measured work.
    """

    def __init__(self) -> None:
        self.worked_at = -math.inf
        self._at: float | None = None
        self._raw: _Counts = (0.0, 0.0, 0.0)
        self._smooth = self._raw

    def sample(self, at: float, pool: InProcessStatistics, held: float) -> StageSample:
        counts, busy = (pool.arrived, pool.done, pool.work), pool.busy
        if not all(map(math.isfinite, counts)):
            busy = math.nan  # unsound
        else:
            if self._at is None:
                self._raw = self._smooth = counts
            if self._at is None or pool.queue > 0 or pool.busy > 0 or pool.done > self._raw[1]:
                self.worked_at = at
            elapsed = at - self._at if self._at is not None else 0.0
            before = self._smooth
            self._smooth = self._smoothed(counts, elapsed)
            if elapsed > 0:
                busy = (self._smooth[2] - before[2]) / elapsed
            self._raw, self._at = counts, at
            counts = self._smooth
        return StageSample(
            at=at,
            queue=pool.queue,
            on=pool.on,
            busy=busy,
            starting=pool.starting,
            arrived=counts[0],
            done=counts[1],
            held=held,
            capacity=pool.capacity,
        )

    def _smoothed(self, counts: _Counts, elapsed: float) -> _Counts:
        if any(new < old for new, old in zip(counts, self._raw, strict=True)):
            return counts  # they restarted: the controller must see that
        share = 1.0 - math.exp(-max(0.0, elapsed) / _SMOOTHING)
        arrived, done, work = (old + (new - old) * share for new, old in zip(counts, self._smooth, strict=True))
        return arrived, done, work


class _QueuedJobs:
    """Jobs that wait at a broker.

    Reports of the workers leave nothing to estimate. Without them: while jobs wait, all consumers are busy; while
    none waits, the estimate decays until jobs wait again. A queue without consumers has workers that are still
    starting, or that poll: as many count as busy as jobs have left the queue.
    """

    def __init__(self, capacity: float, assumed: float) -> None:
        self._capacity = capacity
        self._assumed = assumed
        self._decay = max(_DECAY, 10.0 * assumed)
        self._busy = 0.0
        self._worked = 0.0
        self._waiting = self._consumers = 0.0  # in the last sample
        self._at: float | None = None
        self._is_reported = False
        self._offset = self._done_offset = 0.0
        self._arrived = self._done = 0.0
        self._short_since: float | None = None

    def sample(
        self, at: float, pool: PoolStatistics, queue: QueueStatistics, jobs: JobStatistics | None, held: float
    ) -> StageSample:
        if jobs is None:
            busy, done, taken = self._estimated(at, pool, queue)
        else:
            busy, done, taken = float(jobs.busy), float(jobs.done), float(jobs.taken)
        self._at = at
        if self._is_reported is not (jobs is not None):  # counts continue from the other kind
            self._is_reported = jobs is not None
            self._offset = self._arrived - taken - queue.waiting
            self._done_offset = self._done - done
        self._done = max(self._done, done + self._done_offset)
        return StageSample(
            at=at,
            queue=float(queue.waiting),
            on=float(pool.on),
            busy=busy,
            starting=min(float(pool.starting), max(0.0, pool.on - queue.consumers)),
            arrived=self._counted(at, taken + queue.waiting),
            done=self._done,
            held=held,
            capacity=self._capacity,
        )

    def _estimated(self, at: float, pool: PoolStatistics, queue: QueueStatistics) -> tuple[float, float, float]:
        """Busy workers, jobs done and jobs taken."""
        elapsed = max(0.0, at - self._at) if self._at is not None else 0.0
        if self._at is not None:
            self._busy = self._estimated_busy(elapsed, queue, max(0.0, pool.on))
        elif queue.consumers:
            self._busy = float(queue.consumers)
        else:  # unknown: as many as keep the stage at its size
            self._busy = max(0.0, pool.on - pool.starting - queue.waiting)
        self._waiting, self._consumers = queue.waiting, queue.consumers
        self._worked += self._busy * elapsed / self._assumed
        return self._busy, self._worked, self._worked + self._busy

    def _estimated_busy(self, elapsed: float, queue: QueueStatistics, on: float) -> float:
        """Busy workers; one that is new since the last sample has only a job that has left the queue since."""
        left = max(0.0, self._waiting - queue.waiting)
        if queue.consumers and queue.waiting > 0:
            return min(queue.consumers, self._consumers + left)
        kept = self._busy * math.exp(-elapsed / self._decay)
        if queue.consumers:
            return min(kept + min(left, max(0.0, queue.consumers - self._busy)), queue.consumers)
        if self._consumers:  # they are gone, and their jobs wait again
            kept = 0.0
        return min(kept + left, on)

    def _counted(self, at: float, arrived: float) -> float:
        """The arrivals, never fewer than before; if they stay short, others have removed jobs from the queue."""
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


class StartingWorkers:
    """Estimates how many workers of a pool are still starting, where the pool does not report it.

    Workers that are there at the first call are up. `startup` seconds after the last growth all are.
    """

    def __init__(self, startup: float) -> None:
        self._startup = startup
        self._on: int | None = None
        self._up = 0
        self._grown = 0.0

    def count(self, on: int, at: float) -> int:
        """How many of the `on` workers are starting; call it in every round."""
        if self._on is not None and on > self._on:
            self._grown = at
        if self._on is None or at - self._grown >= self._startup:
            self._up = on
        self._on, self._up = on, min(self._up, on)
        return on - self._up
