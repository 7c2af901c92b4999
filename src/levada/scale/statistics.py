"""Statistics of queues, worker pools and jobs; the autoscaler's rounds and views are in `levada.core.reports`.

Plain data, and cheap to import: processes that only report statistics load nothing else of this package.
"""

from __future__ import annotations

import math

import msgspec


class QueueStatistics(msgspec.Struct, frozen=True):
    """What a broker reports about a queue. Jobs that a worker has taken no longer wait."""

    waiting: float
    consumers: float = 0


class JobStatistics(msgspec.Struct, frozen=True):
    """What the workers of a stage report, summed over all of them; counts run from the beginning."""

    busy: float  # workers; one that does several jobs at once may be busy in part
    taken: int
    done: int
    workers: int = 0  # that report


class PoolStatistics(msgspec.Struct, frozen=True):
    """The workers of one pool."""

    on: float  # workers told to run, including those that are still starting
    stopping: float = 0.0  # workers told to stop that are still finishing a job
    starting: float = 0.0


class InProcessStatistics(PoolStatistics, frozen=True, kw_only=True):
    """The workers and the jobs of a pool in the same process; counts run from the beginning."""

    queue: float  # jobs that wait for a worker
    busy: float  # workers that have a job now
    arrived: float = 0.0
    done: float = 0.0
    work: float = 0.0  # seconds of wall time that workers spent on jobs
    capacity: float = math.inf  # jobs that may wait
