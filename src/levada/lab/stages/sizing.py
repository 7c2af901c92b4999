"""Static sizes: the fewest workers that are enough, by Erlang's formula and confirmed by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from levada.core.errors import LevadaError, UsageError
from levada.lab.stages.figures import StageFigures
from levada.lab.stages.model import Model, StageModel, constant
from levada.lab.stages.runs import StageJob, run_jobs

_MOST = 20_000
_TRIES = 40
_HALF = 0.5


class Sizing(msgspec.Struct, frozen=True):
    """Enough workers for each stage, and how they fare."""

    workers: list[int]
    formula: list[int]  # by Erlang's formula alone
    latency_mean_s: float
    queue_max: list[int]
    dropped: int
    runs: int


def erlang_wait(rate: float, service: float, workers: int) -> float:
    """Mean seconds in the queue of M/M/c; infinite if the workers cannot keep up."""
    load = rate * service
    return _share_waiting(load, workers) * service / (workers - load) if workers > load else math.inf


def erlang_share_above(length: int, rate: float, service: float, workers: int) -> float:
    """Share of the time during which the queue of M/M/c is longer than this."""
    load = rate * service
    return _share_waiting(load, workers) * (load / workers) ** (length + 1) if workers > load else 1.0


def _share_waiting(load: float, workers: int) -> float:
    """Erlang's C: the share of jobs that find every worker busy."""
    blocked = 1.0
    for count in range(1, workers + 1):
        blocked = load * blocked / (count + load * blocked)
    return blocked / (1.0 - load / workers * (1.0 - blocked))


def fewest_workers(rate: float, times: Sequence[float], latency: float) -> list[int]:
    """By the formula: add a worker where it shortens the wait most, until the mean latency is met."""
    _check(rate, times, latency)
    workers = [math.floor(rate * time) + 1 for time in times]
    waits = [erlang_wait(rate, time, count) for time, count in zip(times, workers, strict=True)]
    while sum(times) + sum(waits) > latency:
        shorter = [erlang_wait(rate, time, count + 1) for time, count in zip(times, workers, strict=True)]
        place = max(range(len(times)), key=lambda each: waits[each] - shorter[each])
        workers[place] += 1
        waits[place] = shorter[place]
        if sum(workers) > _MOST:
            raise UsageError(f"more than {_MOST} workers would be needed")
    return workers


def size(rate: float, times: Sequence[float], latency: float, seconds: float = 10_000.0, runs: int = 3) -> Sizing:
    """The fewest workers with this latency, no drops and no queue above half: the formula knows no full queue.

    From the formula's answer up until the simulation confirms it, then down again as long as it does: one worker
    less anywhere would not be enough.
    """
    formula = fewest_workers(rate, times, latency)
    stages = tuple(StageModel(service=time) for time in times)
    models = [
        Model(stages=stages, load=constant(1.0), interval=1.0 / rate, seconds=seconds, seed=seed)
        for seed in range(1, runs + 1)
    ]

    def tried(workers: list[int]) -> tuple[Sizing, bool]:
        """How these workers fare, and whether that is enough."""
        found = run_jobs([StageJob(model, "static", tuple(workers)) for model in models], processes=1)
        full = [max(each.queue_max[place] for each in found) for place in range(len(times))]
        mean = sum(times) + sum(sum(each.queue_latency_mean_s) for each in found) / runs
        sizing = Sizing(list(workers), formula, mean, full, sum(each.dropped for each in found), runs)
        fits = max(full) <= _HALF * stages[0].capacity and sizing.dropped == 0 and mean <= latency + _chance(found)
        return sizing, fits

    workers = list(formula)
    for _ in range(_TRIES):
        found, fits = tried(workers)
        if fits:
            break
        worst = max(range(len(times)), key=found.queue_max.__getitem__)
        workers[worst] += max(1, workers[worst] // 200)
    else:
        raise LevadaError(f"no size was found within {_TRIES} tries; the last was {workers}")
    for place in range(len(times)):
        while found.workers[place] > formula[place]:
            fewer = [count - (each == place) for each, count in enumerate(found.workers)]
            smaller, fits = tried(fewer)
            if not fits:
                break
            found = smaller
    return found


def _chance(found: Sequence[StageFigures]) -> float:
    """Twice the standard error of the runs' mean waits."""
    waits = [sum(each.queue_latency_mean_s) for each in found]
    mean = sum(waits) / len(waits)
    return 2.0 * math.sqrt(sum((wait - mean) ** 2 for wait in waits)) / len(waits)


def _check(rate: float, times: Sequence[float], latency: float) -> None:
    if not 0.0 < rate <= 100_000.0:
        raise UsageError(f"the rate must be above 0 and at most 100000 jobs per second, not {rate}")
    if not times or not all(0.0 < time <= 86_400.0 for time in times):
        raise UsageError("times must be above 0 and at most 86400 s")
    if not sum(times) < latency:
        raise UsageError(f"the work alone takes {sum(times):g} s: a latency of {latency:g} s cannot be met")
    if rate * sum(times) > _MOST:
        raise UsageError(f"more than {_MOST} workers would be needed")
