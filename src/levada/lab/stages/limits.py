"""Limits of Levada's controller, on seeds that it was not tuned on and with slow starts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from levada.lab.parallel import Progress
from levada.lab.reference import Claim, Section, at_most
from levada.lab.stages.comparison import DROPS, LOADS, MOST, OURS, entry_of, late_limit, load_model, report_linear
from levada.lab.stages.figures import StageFigures
from levada.lab.stages.jobs import StageJob, run_jobs

_OVER_PERCENT, _OVER_IN_BURSTS = 2.5, 4.0
_STARTUP, _STARTUP_DROPS = 10.0, 0.3  # seconds; percent


def limits_section(
    seconds: float, seeds: Sequence[int], progress: Progress | None = None, processes: int | None = None
) -> Section:
    """Decisions: at most those of linear with the report's best setting, on the same load and seeds."""
    ours = [StageJob(load_model(load, seconds, seed), OURS, MOST) for load in LOADS for seed in seeds]
    linear = [report_linear(load, seconds, seed) for load in LOADS for seed in seeds]
    found = run_jobs([*ours, *linear], progress, processes)
    rows = []
    for place, load in enumerate(LOADS):
        first, last = place * len(seeds), (place + 1) * len(seeds)
        allowed = fmean(run.decisions for run in found[len(ours) + first : len(ours) + last])
        rows.append((load, _kept(load, ours[first], found[first:last], allowed)))
    columns = ("paid above floor, %", "late, s", "dropped, %", "decisions (of linear)")
    return Section(f"{OURS}, {len(seeds)} fresh seeds of {seconds:,.0f} s", columns, tuple(rows))


def _kept(load: str, job: StageJob, runs: Sequence[StageFigures], decisions: float) -> tuple[Claim, ...]:
    entry = entry_of(load, job, runs)
    return (
        at_most("paid above the floor", _OVER_IN_BURSTS if load == "bursts" else _OVER_PERCENT, entry.over_percent),
        at_most("late", late_limit(load), entry.late_s),
        at_most("dropped", 100 * DROPS, entry.drop_percent),
        at_most("decisions", decisions, entry.decisions),
    )


def startup_section(
    seconds: float, seeds: Sequence[int], progress: Progress | None = None, processes: int | None = None
) -> Section:
    """A worker takes ten seconds to start; with and without holding the source."""
    models = [load_model(load, seconds, seed) for load in LOADS for seed in seeds]
    slow = [
        msgspec.structs.replace(
            model, stages=tuple(msgspec.structs.replace(stage, startup=_STARTUP) for stage in model.stages)
        )
        for model in models
    ]
    held = [msgspec.structs.replace(model, hold=True) for model in slow]
    found = run_jobs([StageJob(model, OURS, MOST) for model in (*held, *slow)], progress, processes)
    rows = []
    for place, load in enumerate(LOADS):
        first, last = place * len(seeds), (place + 1) * len(seeds)
        runs, free = found[first:last], found[len(held) + first : len(held) + last]
        rows.append((load, (_dropped(runs, _STARTUP_DROPS), _dropped(free, 100.0), _share_held(runs, seconds))))
    columns = ("dropped, %", "not held back: dropped, %", "of the time held back, %")
    return Section(f"{OURS}, workers that take {_STARTUP:g} s to start", columns, tuple(rows))


def _dropped(runs: Sequence[StageFigures], limit: float) -> Claim:
    return at_most("dropped", limit, 100 * fmean(run.drop_rate for run in runs))


def _share_held(runs: Sequence[StageFigures], seconds: float) -> Claim:
    return at_most("held back", 100.0, 100 * fmean(run.held_s for run in runs) / seconds)
