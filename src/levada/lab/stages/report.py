"""Tables of the report beside Levada's, and the cost of workers, as the report counts them and as they are paid.

Where its text and its tables differ, the run follows the tables: see `levada.stages.report`. It does not count a
worker that was switched off and still works. The paid workers come from a later rerun in another simulator, whose
figures are here as printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from levada.lab.parallel import Progress
from levada.lab.reference import Claim, Section, at_least, at_most, judge, reference_rows
from levada.lab.stages.comparison import MOST, OURS, load_model
from levada.lab.stages.figures import StageFigures, rank_correlation
from levada.lab.stages.model import Model, StageModel, constant, report_model
from levada.lab.stages.runs import Options, Setting, StageJob, run_groups, run_jobs, sweep
from levada.lab.stages.sizing import erlang_share_above, erlang_wait, size

_STATIC = (14, 174)
# Seconds in each queue of 14 + 174 workers, of which the targets are multiples: the first is printed, the second is
# measured here, for the report does not give it.
_STATIC_WAITS = (0.001125, 0.006)
_POLL = 0.0015


def theory_section(seconds: float, seeds: Sequence[int]) -> Section:
    """Without entry times and polls, as in the formulas; within three standard errors of the simulated mean."""
    rows = []
    for name, interval, workers in (
        ("M/M/1: a scanner of 0.3 s, an orchestrator of 0.25 s", 0.3, 1),
        ("M/M/10: 36 jobs per second, orchestrators of 0.25 s", 1 / 36, 10),
    ):
        stage = StageModel(service=0.25, capacity=1_000_000, entry=0.0, poll=0.0)
        runs = [
            Model(stages=(stage,), load=constant(1.0), interval=interval, seconds=10 * seconds, seed=seed)
            for seed in seeds
        ]
        found = run_jobs([StageJob(model, "static", (workers,)) for model in runs], processes=1)
        wait = erlang_wait(1 / interval, 0.25, workers)
        claims = (
            _within_chance("queue length", wait / interval, [run.queue_mean[0] for run in found]),
            _within_chance("seconds in the queue", wait, [run.queue_latency_mean_s[0] for run in found]),
        )
        rows.append((name, claims))
    return Section("The theory of queues", ("length", "wait, s"), tuple(rows))


def _within_chance(name: str, printed: float, found: Sequence[float]) -> Claim:
    if len(found) < 2:
        return judge(name, printed, found[0], share=0.05, note="one run has no standard error: 5%")
    return judge(name, printed, fmean(found), within=3.0 * stdev(found) / len(found) ** 0.5)


def queue_section(seconds: float, seeds: Sequence[int]) -> Section:
    """Latency of the first queue by its number of workers."""
    rows = []
    for row in reference_rows("stages_static_queue1.csv"):
        orchestrators = int(row["orchestrators"])
        runs = _static_runs(seconds, seeds, (orchestrators, 174))
        mean = 1000 * fmean(run.queue_latency_mean_s[0] for run in runs)
        most = 1000 * fmean(run.queue_latency_max_s[0] for run in runs)
        claims = (
            judge("mean", float(row["queue1_latency_mean_ms"]), mean, share=0.15),
            judge("most", float(row["queue1_latency_max_ms"]), most, share=0.4, note="the greatest of one run"),
        )
        rows.append((f"{orchestrators} orchestrators", claims))
    return Section("Latency of the first queue, 3 scanners", ("mean, ms", "most, ms"), tuple(rows))


def _static_runs(
    seconds: float, seeds: Sequence[int], workers: tuple[int, int], scanners: float = 3.0
) -> list[StageFigures]:
    models = [_rerun_model(seconds, seed, scanners) for seed in seeds]
    return run_jobs([StageJob(model, "static", workers) for model in models], processes=1)


def static_section(seconds: float, seeds: Sequence[int]) -> Section:
    """The report's static sizes."""
    rows = []
    for scanners, most in ((3.0, (14, 174)), (5.0, (19, 280))):
        runs = _static_runs(seconds, seeds, most, scanners)
        claims = (
            judge("mean latency", 5.26, fmean(run.latency_mean_s for run in runs), within=0.02),
            judge("dropped", 0.0, float(sum(run.dropped for run in runs))),
            at_most("fullest queue", 50.0, max(max(run.queue_max) for run in runs), _half_full(scanners, most)),
        )
        rows.append((f"{scanners:g} scanners, {most[0]} + {most[1]}", claims))
    return Section("Static sizes", ("mean latency, s", "dropped", "fullest queue"), tuple(rows))


def sizes_section(seconds: float, runs: int) -> Section:
    """The fewest workers for the report's latency by `size`, beside its static sizes."""
    rows = []
    for rate, printed in ((30.0, (14, 174)), (50.0, (19, 280))):
        found = size(rate, (0.25, 5.0), 5.26, seconds, runs)
        claims = (
            judge("orchestrators", printed[0], found.workers[0], within=1.0),
            judge("catalogs", printed[1], found.workers[1], share=0.02),
        )
        rows.append((f"{rate:g} jobs per second", claims))
    return Section("Fewest workers for 5.26 s, no queue above half", ("orchestrators", "catalogs"), tuple(rows))


def overload_section(seeds: Sequence[int]) -> Section:
    """The report's maximum: 10 scanners, 22 orchestrators, 92 catalogs, queues without a limit, 5 s."""
    stages = tuple(StageModel(service=service, capacity=10_000, poll=_POLL) for service in (0.25, 5.0))
    models = [Model(stages=stages, load=constant(10.0), seconds=5.0, seed=seed) for seed in seeds]
    runs = run_jobs([StageJob(model, "static", (22, 92)) for model in models], processes=1)
    claim = judge("second queue", 284.0, max(run.queue_max[1] for run in runs), share=0.1)
    return Section("Overload: 10 scanners, 22 + 92 workers, 5 s", ("second queue at most",), (("", (claim,)),))


def linear_section(seconds: float, seeds: Sequence[int], progress: Progress | None = None) -> Section:
    rows = reference_rows("stages_linear_scores.csv")
    columns = {"period": "sampling_period_s", "threshold": "queue_threshold", "history": "sampling_history_s"}
    grid: list[Options] = [tuple((key, (float(row[column]),)) for key, column in columns.items()) for row in rows]
    found = sweep(_rerun_model(seconds, 1), "linear", _STATIC, grid, seeds, progress)
    return _scored("Linear up, averaged down: scores", rows, found, 0.95)


def drain_time_section(seconds: float, seeds: Sequence[int], progress: Progress | None = None) -> Section:
    rows = reference_rows("stages_qdte_scores.csv")
    grid: list[Options] = [
        (
            ("period", (float(row["sampling_period_s"]),)),
            ("stable", (float(row["stable_for_s"]),)),
            ("target", tuple(float(row["latency_target_times_static"]) * wait for wait in _STATIC_WAITS)),
        )
        for row in rows
    ]
    found = sweep(_rerun_model(seconds, 1), "drain-time", _STATIC, grid, seeds, progress)
    return _scored("Queue drain time: scores", rows, found, 0.97)


def _half_full(scanners: float, most: tuple[int, int]) -> str:
    """How long a queue of M/M/c is above 50 by the formula."""
    seconds = 10_000 * erlang_share_above(50, 10.0 * scanners, 5.0, most[1])
    return f"a limit; by Erlang's formula the second queue is above it for {seconds:.2f} s of 10,000"


def _scored(title: str, rows: Sequence[dict[str, str]], found: Sequence[Setting], enough: float) -> Section:
    printed = [float(row["score"]) for row in rows]
    ranks = rank_correlation(printed, [setting.score for setting in found])
    alike = Claim("rank correlation", 1.0, (enough, 1.0), ranks, "holds" if ranks >= enough else "misses")
    cells = [
        (setting.name.partition(" ")[2], (judge("score", score, setting.score, within=0.35),))
        for score, setting in zip(printed, found, strict=True)
    ]
    return Section(title, ("score",), (*cells, ("rank correlation", (alike,))))


def _rerun_model(seconds: float, seed: int, scanners: float = 3.0) -> Model:
    return report_model(scanners, seconds=seconds, seed=seed, poll=_POLL)


_DOLLARS = 337.0  # per worker and month
_RERUN = "not in the report: from a rerun of it in another simulator"
_LIMIT = "a limit: the work alone and 2.5%"
_BEST: dict[str, Options] = {
    "static": (),
    "linear": (("threshold", (75.0,)), ("history", (15.0,)), ("period", (1.0,))),
    "drain-time": (
        ("stable", (5.0,)),
        ("target", tuple(2 * wait for wait in _STATIC_WAITS)),
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
    models = [_rerun_model(seconds, seed) for seed in seeds]
    jobs = {name: [StageJob(model, name, _STATIC, own) for model in models] for name, own in _BEST.items()}
    jobs[OURS] = [StageJob(load_model("constant", seconds, seed), OURS, MOST) for seed in seeds]
    return dict(zip(jobs, run_groups(list(jobs.values()), progress, processes), strict=True))


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
    counted = [(name, _priced(name, fmean(sum(run.on_workers) for run in own))) for name, own in runs.items()]
    paid = [
        (name, _priced(name, fmean(sum(run.paid_workers) for run in own), of_all=True)) for name, own in runs.items()
    ]
    columns = ("workers", "USD", "saved, USD")
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
    printed = _PAID[name] if of_all else sum(_WORKERS.get(name, _STATIC))
    saved = _saved(printed) if of_all else _SAVED.get(name, 0.0)
    return (
        judge("workers", printed, workers, share=0.03, note=note),
        judge("USD", round(_DOLLARS * printed), round(_DOLLARS * workers), share=0.03, note=note),
        judge("saved", saved, _saved(workers), share=0.1, within=1.0, note=note),
    )


def _saved(workers: float) -> float:
    return round(_DOLLARS * (sum(_STATIC) - workers))
