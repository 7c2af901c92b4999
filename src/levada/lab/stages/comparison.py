"""Who is cheapest and still quick? Ours beside swept settings of all others, on loads that are not alike.

The limits are the same for all, and so is whom to switch off: an idle worker first. Drops at most 0.1%, mean
latency at most the work plus 0.10 s (0.15 s in bursts), decisions at most those of linear with the report's best
setting. Every setting is tried on one seed; the best few of each controller are then run on the seeds that count,
and the cheapest that keeps the limits is shown; if none does, the one that drops least, and of these the quickest.
Beside it stands the cheapest that would keep them if decisions cost nothing, where that is another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

import msgspec

from levada.lab.stages.figures import Figures
from levada.lab.stages.jobs import Job, Progress, run_jobs
from levada.lab.stages.rivals import CONTROLLERS, LOADS, MOST, grid_of, load_model, report_linear

__all__ = ["Entry", "compare", "entry_of", "late_limit"]

DROPS = 0.001
_LATE, _LATE_IN_BURSTS = 0.10, 0.15
_FINALISTS = 6
_TRIAL_SEEDS = (1,)
_TRIAL_SHARE = 0.5  # of the seconds of a run that counts


class Entry(msgspec.Struct, frozen=True):
    """One controller on one load, its best setting, means over the seeds."""

    load: str
    setting: str
    keeps_limits: bool
    keeps_others: bool  # all but that of decisions
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
) -> list[Entry]:
    """`seeds` are those that count; ours was tuned on lower ones, and rivals are tried on lower ones too."""
    kinds = [(load, controller) for load in loads for controller in controllers]
    allowed = {load: _decisions_of_linear(load, seeds[:2], seconds, processes) for load in loads}
    trials = [
        [Job(load_model(load, _TRIAL_SHARE * seconds, 1), controller, MOST, each) for each in grid_of(controller)]
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
    """Per second."""
    runs = run_jobs([report_linear(load, seconds, seed) for seed in seeds], processes=processes)
    return fmean(run.decisions for run in runs) / seconds


def _run_all(
    kinds: Sequence[tuple[str, str]],
    trials: Sequence[Sequence[Job]],
    seeds: Sequence[int],
    allowed: Mapping[str, float],
    progress: Progress | None,
    processes: int | None,
    *,
    trial: bool = False,
) -> list[list[Entry]]:
    jobs = [_seeded(job, seed) for own in trials for job in own for seed in seeds]
    runs = iter(run_jobs(jobs, progress, processes))
    return [
        [entry_of(load, job, [next(runs) for _ in seeds], allowed[load], trial=trial) for job in own]
        for (load, _), own in zip(kinds, trials, strict=True)
    ]


def _finalists(trials: Sequence[Job], entries: Sequence[Entry], seconds: float) -> list[Job]:
    """By turns the best of all, and the best if decisions cost nothing."""
    places = range(len(trials))
    ranks = [sorted(places, key=lambda place: rank(entries[place])) for rank in (_rank, _rank_of_others)]
    chosen = dict.fromkeys(place for pair in zip(*ranks, strict=True) for place in pair)
    return [
        msgspec.structs.replace(trials[place], model=load_model(entries[place].load, seconds, 1))
        for place in list(chosen)[:_FINALISTS]
    ]


def _seeded(job: Job, seed: int) -> Job:
    return msgspec.structs.replace(job, model=msgspec.structs.replace(job.model, seed=seed))


def _rank(entry: Entry) -> tuple[bool, bool, float, float]:
    return not entry.keeps_limits, *_rank_of_others(entry)


def _rank_of_others(entry: Entry) -> tuple[bool, float, float]:
    if entry.keeps_others:
        return False, entry.over_percent, entry.late_s
    return True, max(entry.drop_percent, 100 * DROPS), entry.late_s


def entry_of(
    load: str, job: Job, runs: Sequence[Figures], decisions_per_s: float = math.inf, *, trial: bool = False
) -> Entry:
    """In a trial, which is short, by what was really waited and worked: more or longer jobs than usual are luck."""
    model = job.model
    floor = fmean(sum(run.busy_workers) for run in runs) if trial else model.busy_floor
    work = model.busy_floor * model.seconds / model.jobs
    waits = fmean(sum(run.queue_latency_mean_s) for run in runs) + sum(stage.entry for stage in model.stages)
    late = waits if trial else fmean(run.latency_mean_s for run in runs) - work
    drops = fmean(run.drop_rate for run in runs)
    paid = fmean(sum(run.paid_workers) for run in runs)
    decisions = fmean(run.decisions for run in runs)
    keeps = drops <= DROPS and late <= late_limit(load)
    return Entry(
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
