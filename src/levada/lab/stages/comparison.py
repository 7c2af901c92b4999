"""Who is cheapest and still quick? Ours beside swept settings of all others, on loads that are not alike.

The limits are the same for all, and so is whom to switch off: an idle worker first. Drops at most 0.1%, mean
latency at most the work plus 0.10 s (0.15 s in bursts). Of each rival the cheapest setting that keeps them is
shown; if none does, the one that drops least, and of these the quickest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from statistics import fmean

import msgspec

from levada.lab.stages.figures import Figures
from levada.lab.stages.jobs import Job, Options, Progress, run_jobs
from levada.lab.stages.loads import bursts, constant, daily, steps
from levada.lab.stages.model import Model, StageModel

__all__ = ["LOADS", "OURS", "Entry", "compare", "grid_of", "load_model"]

OURS = "feed-forward"
LOADS = ("constant", "steps", "bursts", "daily", "lognormal", "slowed")
MOST = (80, 1000)
_DROPS, _LATE, _LATE_IN_BURSTS = 0.001, 0.10, 0.15

_GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "linear": {"period": (0.25, 1.0), "threshold": (25.0, 50.0, 75.0), "history": (1.0, 5.0, 15.0)},
    "drain-time": {"period": (0.25,), "target": (0.0, 0.002, 0.02), "stable": (1.0, 5.0, 30.0)},
    "hpa": {
        "period": (0.25, 1.0, 15.0),
        "target": (0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 1.0),
        "window": (0.0, 15.0, 60.0),
    },
    "keda": {
        "period": (0.25, 1.0, 15.0),
        "jobs": (0.9, 0.95, 0.97, 0.98, 0.99, 1.0, 1.05),
        "window": (0.0, 15.0, 60.0),
    },
    "ds2": {"period": (1.0,), "window": (2.0, 5.0, 20.0), "spare": (1.05, 1.1, 1.2, 1.3)},
    OURS: {},
}


class Entry(msgspec.Struct, frozen=True):
    """One controller on one load, its best setting, means over the seeds."""

    load: str
    setting: str
    keeps_limits: bool
    paid_workers: float
    busy_floor: float
    over_percent: float  # paid above the floor
    late_s: float  # mean latency above the work itself
    drop_percent: float
    decisions: float
    settings_tried: int

    @property
    def controller(self) -> str:
        return self.setting.partition(" ")[0]


def load_model(load: str, seconds: float, seed: int) -> Model:
    times = "lognormal" if load == "lognormal" else "exponential"
    shapes = {
        "steps": steps((1.0, 5.0, 3.0, 8.0, 2.0), seconds),
        "bursts": bursts(2.0, 10.0, 10.0, 120.0),
        "daily": daily(1.0, 5.0, seconds / 5),
    }
    return Model(
        stages=tuple(StageModel(service=service, times=times) for service in (0.25, 5.0)),
        load=shapes.get(load, constant(3.0)),
        seconds=seconds,
        seed=seed,
        slow_from=seconds / 2 if load == "slowed" else math.inf,
    )


def grid_of(controller: str) -> list[Options]:
    axes = [[(key, (value,)) for value in values] for key, values in _GRIDS[controller].items()]
    return [tuple(options) for options in product(*axes)]


def compare(
    loads: Sequence[str] = LOADS,
    seeds: Sequence[int] = (101, 102, 103),
    seconds: float = 3_000.0,
    controllers: Sequence[str] = tuple(_GRIDS),
    progress: Progress | None = None,
    processes: int | None = None,
) -> list[Entry]:
    jobs = [
        Job(load_model(load, seconds, seed), controller, MOST, options)
        for load in loads
        for controller in controllers
        for options in grid_of(controller)
        for seed in seeds
    ]
    found = run_jobs(jobs, progress, processes)
    entries: dict[tuple[str, str], list[Entry]] = {}
    places = iter(range(0, len(jobs), len(seeds)))
    for load in loads:
        for controller in controllers:
            own = [next(places) for _ in grid_of(controller)]
            entries[load, controller] = [
                _entry(load, jobs[place], found[place : place + len(seeds)], len(own)) for place in own
            ]
    return [min(tried, key=_rank) for tried in entries.values()]


def _rank(entry: Entry) -> tuple[bool, float, float]:
    if entry.keeps_limits:
        return False, entry.paid_workers, entry.late_s
    return True, max(entry.drop_percent, 100 * _DROPS), entry.late_s


def _entry(load: str, job: Job, runs: Sequence[Figures], tried: int) -> Entry:
    model = job.model
    drops = fmean(run.drop_rate for run in runs)
    work = model.busy_floor * model.seconds / model.jobs
    late = fmean(run.latency_mean_s for run in runs) - work
    paid = fmean(sum(run.paid_workers) for run in runs)
    return Entry(
        load=load,
        setting=job.name,
        keeps_limits=drops <= _DROPS and late <= (_LATE_IN_BURSTS if load == "bursts" else _LATE),
        paid_workers=paid,
        busy_floor=model.busy_floor,
        over_percent=100 * (paid / model.busy_floor - 1),
        late_s=late,
        drop_percent=100 * drops,
        decisions=fmean(run.decisions for run in runs),
        settings_tried=tried,
    )
