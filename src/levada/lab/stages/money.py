"""Cost of workers, as the report counts them and as they are paid.

The report does not count a worker that was switched off and still works. The paid workers come from a later rerun
in another simulator, whose figures are here as printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from levada.lab.parallel import Progress
from levada.lab.reference import Claim, Section, at_least, at_most, judge
from levada.lab.stages.comparison import MOST, OURS, load_model
from levada.lab.stages.figures import StageFigures
from levada.lab.stages.jobs import Options, StageJob, run_jobs
from levada.lab.stages.report import STATIC, STATIC_WAITS, rerun_model

_DOLLARS = 337.0  # per worker and month
_RERUN = "not in the report: from a rerun of it in another simulator"
_LIMIT = "a limit: the work alone and 2.5%"
_BEST: dict[str, Options] = {
    "linear": (("threshold", (75.0,)), ("history", (15.0,)), ("period", (1.0,))),
    "drain-time": (
        ("stable", (5.0,)),
        ("target", tuple(2 * wait for wait in STATIC_WAITS)),
        ("period", (0.25,)),
    ),
}
_WORKERS = {"linear": (7.41, 133.9), "drain-time": (10.0, 145.9)}
_PAID = {"static": 188.0, "linear": 157.5, "drain-time": 162.4}
_SAVED = {"linear": 15_502.0, "drain-time": 10_784.0}

Runs = dict[str, list[StageFigures]]


def run_best(
    seconds: float, seeds: Sequence[int], progress: Progress | None = None, processes: int | None = None
) -> Runs:
    """The report's best settings and no control, with its way to remove workers; Levada's, idle workers first."""
    jobs = {
        "static": [StageJob(rerun_model(seconds, seed), "static", STATIC) for seed in seeds],
        **{
            name: [StageJob(rerun_model(seconds, seed), name, STATIC, own) for seed in seeds]
            for name, own in _BEST.items()
        },
        OURS: [StageJob(load_model("constant", seconds, seed), OURS, MOST) for seed in seeds],
    }
    found = iter(run_jobs([job for own in jobs.values() for job in own], progress, processes))
    return {name: [next(found) for _ in own] for name, own in jobs.items()}


def side_by_side_section(runs: Runs) -> Section:
    rows = []
    for name, printed in _WORKERS.items():
        first, second = (fmean(run.on_workers[stage] for run in runs[name]) for stage in (0, 1))
        claims = (
            judge("orchestrators", printed[0], first, share=0.03),
            judge("catalogs", printed[1], second, share=0.03),
        )
        rows.append((name, claims))
    columns = ("orchestrators", "catalogs")
    return Section("Side by side: workers on average, as the report counts", columns, tuple(rows))


def money_sections(runs: Runs) -> list[Section]:
    """USD a month. Savings are against 188 workers."""
    columns = ("workers", "USD", "saved, USD")
    counted = [(name, _priced(name, fmean(sum(run.on_workers) for run in own))) for name, own in runs.items()]
    paid = [
        (name, _priced(name, fmean(sum(run.paid_workers) for run in own), of_all=True)) for name, own in runs.items()
    ]
    return [
        Section("Cost a month, as the report counts workers", columns, tuple(counted)),
        Section("Cost a month of all that are paid", columns, tuple(paid)),
    ]


def _priced(name: str, workers: float, *, of_all: bool = False) -> tuple[Claim, ...]:
    if name == OURS:
        limit = 1.025 * load_model("constant", 1.0, 1).busy_floor
        return (
            at_most("workers", limit, workers, _LIMIT),
            at_most("USD", round(_DOLLARS * limit), round(_DOLLARS * workers), _LIMIT),
            at_least("saved", _saved(limit), _saved(workers), _LIMIT),
        )
    note = _RERUN if of_all else ""
    printed = _PAID[name] if of_all else sum(_WORKERS.get(name, STATIC))
    saved = _saved(printed) if of_all else _SAVED.get(name, 0.0)
    return (
        judge("workers", printed, workers, share=0.03, note=note),
        judge("USD", round(_DOLLARS * printed), round(_DOLLARS * workers), share=0.03, note=note),
        judge("saved", saved, _saved(workers), share=0.1, within=1.0, note=note),
    )


def _saved(workers: float) -> float:
    return round(_DOLLARS * (sum(STATIC) - workers))
