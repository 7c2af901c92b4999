"""All controllers on the same loads, Levada's own beside swept settings of the others.

The limits are the same for all, and so is the choice of the worker to switch off: an idle one first. Drops at most
0.1%, mean latency at most the work plus 0.10 s (0.15 s in bursts), decisions at most those of linear with the
report's best setting. Every setting is tried on one seed. The best few of each controller are then run on the seeds
that count, and the cheapest that keeps the limits is shown; if none does, the one that drops least, and of these
the quickest. Beside it stands the cheapest that would keep the limits if decisions were free, where that is
another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean

import msgspec

from levada.lab.parallel import Progress
from levada.lab.stages.figures import StageFigures
from levada.lab.stages.jobs import Options, StageJob, run_jobs
from levada.lab.stages.model import Model, StageModel, bursts, constant, daily, steps
from levada.lab.stages.sizing import fewest_workers

OURS = "feed-forward"
LOADS = ("constant", "steps", "bursts", "daily", "lognormal", "slowed")
MOST = (80, 1000)
_PEAKS = {"steps": 8.0, "bursts": 10.0, "daily": 5.0}  # scanners; 3 otherwise
_SHARES = (0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 1.0)
_POD_PERIODS, _WINDOWS, _TOLERANCES = (0.25, 1.0, 15.0), (0.0, 1.0, 4.0, 15.0), (0.0, 0.02, 0.05, 0.1)
_GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    OURS: {},
    "linear": {
        "period": (0.25, 0.5, 1.0),
        "threshold": (10.0, 15.0, 20.0, 25.0, 35.0, 50.0, 75.0, 100.0),
        "history": (1.0, 2.0, 5.0, 15.0),
    },
    "drain-time": {
        "period": (0.25, 1.0),
        "target": (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
        "stable": (1.0, 2.0, 5.0, 15.0, 30.0),
    },
    "drain-time-as-written": {
        "period": (0.25,),
        "target": (0.0, 0.01, 0.02, 0.05, 0.1, 0.2),
        "stable": (0.5, 1.0, 2.0, 5.0, 15.0),
    },
    "hpa": {"period": _POD_PERIODS, "target": _SHARES, "window": _WINDOWS, "tolerance": _TOLERANCES},
    "keda": {"period": _POD_PERIODS, "jobs": (*_SHARES, 1.05), "window": _WINDOWS, "tolerance": _TOLERANCES},
    "ds2": {
        "period": (0.25, 1.0),
        "window": (1.0, 2.0, 5.0, 10.0, 20.0),
        "spare": (1.0, 1.02, 1.05, 1.1, 1.2, 1.3),
    },
}
CONTROLLERS = tuple(_GRIDS)


def load_model(load: str, seconds: float, seed: int) -> Model:
    """The model of one of the loads."""
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
    """All settings of a controller that are tried."""
    axes = [[(key, (value,)) for value in values] for key, values in _GRIDS[controller].items()]
    return [tuple(options) for options in product(*axes)]


def report_linear(load: str, seconds: float, seed: int) -> StageJob:
    """The report's best setting. Its most workers are the static size for the peak of the load, as in the
    report."""
    slow = 2.0 if load == "slowed" else 1.0
    peak = fewest_workers(10.0 * _PEAKS.get(load, 3.0), (0.25 * slow, 5.0 * slow), 5.25 * slow + 0.01)
    options: Options = (("period", (1.0,)), ("threshold", (75.0,)), ("history", (15.0,)))
    return StageJob(load_model(load, seconds, seed), "linear", (peak[0], peak[1]), options)


DROPS = 0.001
_LATE, _LATE_IN_BURSTS = 0.10, 0.15
_FINALISTS = 6
_TRIAL_SEEDS = (1,)
_TRIAL_SHARE = 0.5  # of the seconds of a run that counts


class ControllerEntry(msgspec.Struct, frozen=True):
    """One controller on one load with its best setting, means over the seeds."""

    load: str
    setting: str
    keeps_limits: bool
    keeps_others: bool  # all limits but that of decisions
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


def late_limit(load: str) -> float:
    return _LATE_IN_BURSTS if load == "bursts" else _LATE


def compare(
    loads: Sequence[str] = LOADS,
    seeds: Sequence[int] = tuple(range(301, 311)),
    seconds: float = 3_000.0,
    controllers: Sequence[str] = CONTROLLERS,
    progress: Progress | None = None,
    processes: int | None = None,
) -> list[ControllerEntry]:
    """`seeds` are those that count; Levada's controller was tuned on lower ones, and its rivals are tried on lower
    ones."""
    kinds = [(load, controller) for load in loads for controller in controllers]
    allowed = {load: _decisions_of_linear(load, seeds[:2], seconds, processes) for load in loads}
    trials = [
        [StageJob(load_model(load, _TRIAL_SHARE * seconds, 1), controller, MOST, each) for each in grid_of(controller)]
        for load, controller in kinds
    ]
    tried = _run_all(kinds, trials, _TRIAL_SEEDS, allowed, progress, processes, trial=True)
    finals = [_finalists(own, entries, seconds) for own, entries in zip(trials, tried, strict=True)]
    found = _run_all(kinds, finals, seeds, allowed, progress, processes)
    return [
        msgspec.structs.replace(entry, settings_tried=len(own))
        for entries, own in zip(found, trials, strict=True)
        for entry in dict.fromkeys((min(entries, key=_rank), min(entries, key=_rank_of_others)))
    ]


def _decisions_of_linear(load: str, seeds: Sequence[int], seconds: float, processes: int | None) -> float:
    """Decisions per second."""
    runs = run_jobs([report_linear(load, seconds, seed) for seed in seeds], processes=processes)
    return fmean(run.decisions for run in runs) / seconds


def _run_all(
    kinds: Sequence[tuple[str, str]],
    trials: Sequence[Sequence[StageJob]],
    seeds: Sequence[int],
    allowed: Mapping[str, float],
    progress: Progress | None,
    processes: int | None,
    *,
    trial: bool = False,
) -> list[list[ControllerEntry]]:
    jobs = [_seeded(job, seed) for own in trials for job in own for seed in seeds]
    runs = iter(run_jobs(jobs, progress, processes))
    return [
        [entry_of(load, job, [next(runs) for _ in seeds], allowed[load], trial=trial) for job in own]
        for (load, _), own in zip(kinds, trials, strict=True)
    ]


def _finalists(trials: Sequence[StageJob], entries: Sequence[ControllerEntry], seconds: float) -> list[StageJob]:
    """Alternately the best of all, and the best if decisions were free."""
    places = range(len(trials))
    ranks = [sorted(places, key=lambda place: rank(entries[place])) for rank in (_rank, _rank_of_others)]
    chosen = dict.fromkeys(place for pair in zip(*ranks, strict=True) for place in pair)
    return [
        msgspec.structs.replace(trials[place], model=load_model(entries[place].load, seconds, 1))
        for place in list(chosen)[:_FINALISTS]
    ]


def _seeded(job: StageJob, seed: int) -> StageJob:
    return msgspec.structs.replace(job, model=msgspec.structs.replace(job.model, seed=seed))


def _rank(entry: ControllerEntry) -> tuple[bool, bool, float, float]:
    return not entry.keeps_limits, *_rank_of_others(entry)


def _rank_of_others(entry: ControllerEntry) -> tuple[bool, float, float]:
    if entry.keeps_others:
        return False, entry.over_percent, entry.late_s
    return True, max(entry.drop_percent, 100 * DROPS), entry.late_s


def entry_of(
    load: str,
    job: StageJob,
    runs: Sequence[StageFigures],
    decisions_per_s: float = math.inf,
    *,
    trial: bool = False,
) -> ControllerEntry:
    """A trial is short, so it is judged by the actual waits and work: more or longer jobs than usual are chance."""
    model = job.model
    floor = fmean(sum(run.busy_workers) for run in runs) if trial else model.busy_floor
    work = model.busy_floor * model.seconds / model.jobs
    waits = fmean(sum(run.queue_latency_mean_s) for run in runs) + sum(stage.entry for stage in model.stages)
    late = waits if trial else fmean(run.latency_mean_s for run in runs) - work
    drops = fmean(run.drop_rate for run in runs)
    paid = fmean(sum(run.paid_workers) for run in runs)
    decisions = fmean(run.decisions for run in runs)
    keeps = drops <= DROPS and late <= late_limit(load)
    return ControllerEntry(
        load=load,
        setting=job.name,
        keeps_limits=keeps and decisions <= decisions_per_s * model.seconds,
        keeps_others=keeps,
        paid_workers=paid,
        busy_floor=floor,
        over_percent=100 * (paid / floor - 1),
        late_s=late,
        drop_percent=100 * drops,
        decisions=decisions,
        settings_tried=1,
    )
