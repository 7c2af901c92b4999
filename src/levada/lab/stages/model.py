"""What is simulated? A source, stages of workers with a queue before each, a load, and the length of the run."""

from __future__ import annotations

import math

import msgspec

from levada.errors import UsageError
from levada.lab.stages.loads import Load, constant

__all__ = ["TIMES", "Model", "StageModel", "mean_time", "report_model"]

TIMES = ("exponential", "deterministic", "lognormal", "recorded")
_MOST_JOBS = 100_000_000
_MOST_CRASHES = 1_000


class StageModel(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds. A worker that finds its queue empty looks again after `poll`, on average."""

    service: float
    times: str = "exponential"
    spread: float = 1.0  # of log-normal times: the standard deviation of their logarithm
    recorded: tuple[float, ...] = ()  # drawn from, where times are `recorded`
    capacity: int = 100
    entry: float = 0.001
    poll: float = 0.002
    startup: float = 0.0
    first: int = 1  # workers at the beginning


class Model(msgspec.Struct, frozen=True, kw_only=True):
    stages: tuple[StageModel, ...]
    load: Load
    seconds: float = 10_000.0
    seed: int = 1
    interval: float = 0.1  # between the jobs of one scanner
    idle_first: bool = True  # whom to switch off: an idle worker, or as in the report that of the highest number
    slow_from: float = math.inf  # from then on every service takes `slow_factor` times as long
    slow_factor: float = 2.0
    crashes: float = 0.0  # per worker and second; its job goes back to the head of its queue
    hold: bool = False  # let the controller hold the source back
    budget: int | None = None  # of workers over all stages

    def __post_init__(self) -> None:
        if not 1 <= len(self.stages) <= 100:
            raise UsageError(f"a model has 1 to 100 stages, not {len(self.stages)}")
        for stage in self.stages:
            _check(stage)
        if not (self.interval > 0.0 and self.slow_factor > 0.0 and self.slow_from >= 0.0):
            raise UsageError("interval and slow_factor must be above 0, slow_from 0 or more")
        if not 0.0 <= self.crashes <= _MOST_CRASHES:
            raise UsageError(f"crashes must be 0 to {_MOST_CRASHES} per worker and second, not {self.crashes:g}")
        if not (self.seconds > 0.0 and self.jobs <= _MOST_JOBS):
            raise UsageError(f"a run must have more than 0 s and at most {_MOST_JOBS} jobs")
        if self.budget is not None and self.budget < len(self.stages):
            raise UsageError(f"a budget of {self.budget} workers is not one for each of {len(self.stages)} stages")
        if not 0 <= self.seed < 2**32:
            raise UsageError(f"the seed must be between 0 and 2^32 - 1, not {self.seed}")

    @property
    def jobs(self) -> float:
        """So many are made, on average."""
        return self.load.mean(self.seconds) * self.seconds / self.interval

    @property
    def busy_floor(self) -> float:
        """Workers that are busy on average whoever controls them: fewer cannot do the work."""
        slow = max(0.0, self.seconds - self.slow_from)
        stretched = 1.0 + (self.slow_factor - 1.0) * slow / self.seconds
        return self.jobs / self.seconds * self.service * stretched

    @property
    def service(self) -> float:
        """Seconds of work per job, on average."""
        return sum(mean_time(stage) for stage in self.stages)


def mean_time(stage: StageModel) -> float:
    return sum(stage.recorded) / len(stage.recorded) if stage.times == "recorded" else stage.service


def report_model(scanners: float = 3.0, *, seconds: float = 10_000.0, seed: int = 1, poll: float = 0.002) -> Model:
    """Scanners of 0.1 s, orchestrators of 0.25 s, catalogs of 5 s; the highest number goes off first."""
    stages = tuple(StageModel(service=service, poll=poll) for service in (0.25, 5.0))
    return Model(stages=stages, load=constant(scanners), seconds=seconds, seed=seed, idle_first=False)


def _check(stage: StageModel) -> None:
    if stage.times not in TIMES:
        raise UsageError(f"times are one of {', '.join(TIMES)}, not {stage.times!r}")
    given = stage.recorded if stage.times == "recorded" else (stage.service,)
    if not given or not all(0.0 < time < math.inf for time in given):
        raise UsageError("a service takes more than 0 s, and recorded times are not empty")
    if not 1 <= stage.capacity <= 10_000_000:
        raise UsageError(f"a queue holds 1 to 10000000 jobs, not {stage.capacity}")
    if not all(0.0 <= value < math.inf for value in (stage.spread, stage.entry, stage.poll, stage.startup)):
        raise UsageError("spread, entry, poll and startup must be 0 or more")
    if not 0 <= stage.first <= 100_000:
        raise UsageError(f"a stage begins with 0 to 100000 workers, not {stage.first}")
