"""All controllers on the same loads, Levada's own beside swept settings of the others, and limits of its own.

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
from pathlib import Path
from statistics import fmean

import msgspec

from levada.lab.parallel import Progress
from levada.lab.pictures import blank_figure, save_picture
from levada.lab.reference import Claim, Section, at_most, reference_rows
from levada.lab.stages.figures import StageFigures
from levada.lab.stages.model import Model, StageModel, bursts, constant, daily, steps
from levada.lab.stages.runs import Options, StageJob, run_groups, run_jobs
from levada.lab.stages.sizing import fewest_workers

OURS = "feed-forward"
LOADS = ("constant", "steps", "bursts", "daily", "lognormal", "slowed")
MOST = (80, 1000)
_PEAKS = {"steps": 8.0, "bursts": 10.0, "daily": 5.0}  # scanners; 3 otherwise
_GRIDS: dict[str, dict[str, tuple[float, ...]]] = {OURS: {}}  # of each controller, the values tried of each option
for _row in reference_rows("stages_grids.csv"):
    _GRIDS.setdefault(_row["controller"], {})[_row["option"]] = tuple(map(float, _row["values"].split()))
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


_DROPS = 0.001
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


def _late_limit(load: str) -> float:
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
    groups = [[_seeded(job, seed) for seed in seeds] for own in trials for job in own]
    runs = iter(run_groups(groups, progress, processes))
    return [
        [_entry(load, job, next(runs), allowed[load], trial=trial) for job in own]
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
    return True, max(entry.drop_percent, 100 * _DROPS), entry.late_s


def _entry(
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
    keeps = drops <= _DROPS and late <= _late_limit(load)
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


_OVER_PERCENT, _OVER_IN_BURSTS = 2.5, 4.0
_STARTUP, _STARTUP_DROPS = 10.0, 0.3  # seconds; percent


def limits_section(
    seconds: float, seeds: Sequence[int], progress: Progress | None = None, processes: int | None = None
) -> Section:
    """Limits of Levada's controller, on seeds that it was not tuned on. Decisions: at most those of linear with the
    report's best setting, on the same load and seeds."""
    ours = [[StageJob(load_model(load, seconds, seed), OURS, MOST) for seed in seeds] for load in LOADS]
    linear = [[report_linear(load, seconds, seed) for seed in seeds] for load in LOADS]
    found = run_groups([*ours, *linear], progress, processes)
    rows = []
    for place, load in enumerate(LOADS):
        entry = _entry(load, ours[place][0], found[place])
        allowed = fmean(run.decisions for run in found[len(ours) + place])
        claims = (
            at_most("paid above the floor", _OVER_IN_BURSTS if load == "bursts" else _OVER_PERCENT, entry.over_percent),
            at_most("late", _late_limit(load), entry.late_s),
            at_most("dropped", 100 * _DROPS, entry.drop_percent),
            at_most("decisions", allowed, entry.decisions),
        )
        rows.append((load, claims))
    columns = ("paid above floor, %", "late, s", "dropped, %", "decisions (of linear)")
    return Section(f"{OURS}, {len(seeds)} fresh seeds of {seconds:,.0f} s", columns, tuple(rows))


def startup_section(
    seconds: float, seeds: Sequence[int], progress: Progress | None = None, processes: int | None = None
) -> Section:
    """A worker takes ten seconds to start; with and without holding the source."""
    held, free = (
        [[StageJob(_slow_start(load, seconds, seed, hold), OURS, MOST) for seed in seeds] for load in LOADS]
        for hold in (True, False)
    )
    found = run_groups([*held, *free], progress, processes)
    rows = [
        (load, (_dropped(runs, _STARTUP_DROPS), _dropped(others, 100.0), _share_held(runs, seconds)))
        for load, runs, others in zip(LOADS, found[: len(held)], found[len(held) :], strict=True)
    ]
    columns = ("dropped, %", "not held back: dropped, %", "of the time held back, %")
    return Section(f"{OURS}, workers that take {_STARTUP:g} s to start", columns, tuple(rows))


def _slow_start(load: str, seconds: float, seed: int, hold: bool) -> Model:
    model = load_model(load, seconds, seed)
    stages = tuple(msgspec.structs.replace(stage, startup=_STARTUP) for stage in model.stages)
    return msgspec.structs.replace(model, stages=stages, hold=hold)


def _dropped(runs: Sequence[StageFigures], limit: float) -> Claim:
    return at_most("dropped", limit, 100 * fmean(run.drop_rate for run in runs))


def _share_held(runs: Sequence[StageFigures], seconds: float) -> Claim:
    return at_most("held back", 100.0, 100 * fmean(run.held_s for run in runs) / seconds)


def draw_comparison(points: Sequence[tuple[str, float, float]], path: Path) -> None:
    """Latency over cost; a point is a controller, its paid workers and its mean latency."""
    figure = blank_figure(8, 5)
    axes = figure.subplots()
    for name in dict.fromkeys(point[0] for point in points):
        own = [point for point in points if point[0] == name]
        color = "black" if name == OURS else None
        axes.scatter([each[1] for each in own], [each[2] for each in own], label=name, color=color, s=24)
    axes.set_xlabel("paid workers")
    axes.set_ylabel("mean latency, s")
    axes.legend(frameon=False)
    save_picture(figure, path)
