"""Do the report's own figures come out again? Its checks, its sizes, its two score tables, and its comparison.

Where its text and its tables part, what the tables tell was run: see `levada.stages.linear` and
`levada.stages.drain_time`.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib import resources
from statistics import fmean

from levada.lab.claims import Claim, Section, judge
from levada.lab.stages.figures import Figures
from levada.lab.stages.jobs import Job, Options, Progress, run_jobs
from levada.lab.stages.loads import constant
from levada.lab.stages.model import Model, StageModel, report_model
from levada.lab.stages.scores import rank_correlation
from levada.lab.stages.sizing import erlang_wait
from levada.lab.stages.sweeping import Setting, sweep

__all__ = [
    "comparison_section",
    "drain_time_section",
    "linear_section",
    "mm1_section",
    "overload_section",
    "queue_section",
    "static_section",
]

DOLLARS = 337.0  # per worker and month
_MOST = (14, 174)
# Seconds in each queue of 14 + 174 workers, of which the targets are multiples: the first is printed, the
# second is what we measure, for the report does not say.
_STATIC_WAITS = (0.001125, 0.006)
_POLL = 0.0015
_RERUN = "not in the report: from a rerun of it in another simulator"


def mm1_section(seconds: float, seeds: Sequence[int]) -> Section:
    """One scanner of 0.3 s and one orchestrator; no entry and no polls, as the formula has it."""
    stage = StageModel(service=0.25, capacity=1_000_000, entry=0.0, poll=0.0)
    models = [
        Model(stages=(stage,), load=constant(1.0), interval=0.3, seconds=10 * seconds, seed=seed) for seed in seeds
    ]
    runs = run_jobs([Job(model, "static", (1,)) for model in models], processes=1)
    length = fmean(run.queue_mean[0] for run in runs)
    wait = fmean(run.queue_latency_mean_s[0] for run in runs)
    claims = (
        judge("queue length", 25 / 6, length, share=0.05),
        judge("seconds in the queue", erlang_wait(1 / 0.3, 0.25, 1), wait, share=0.05),
    )
    return Section(
        "M/M/1: a scanner of 0.3 s, an orchestrator of 0.25 s", ("length", "wait, s"), (("queue", claims),)
    )


def queue_section(seconds: float, seeds: Sequence[int]) -> Section:
    rows = []
    for row in _table("stages_static_queue1.csv"):
        orchestrators = int(row["orchestrators"])
        jobs = [Job(_model(seconds, seed), "static", (orchestrators, 174)) for seed in seeds]
        runs = run_jobs(jobs, processes=1)
        mean = 1000 * fmean(run.queue_latency_mean_s[0] for run in runs)
        most = 1000 * fmean(run.queue_latency_max_s[0] for run in runs)
        claims = (
            judge("mean", float(row["queue1_latency_mean_ms"]), mean, share=0.15),
            judge("most", float(row["queue1_latency_max_ms"]), most, share=0.4, note="the greatest of one run"),
        )
        rows.append((f"{orchestrators} orchestrators", claims))
    return Section("Latency of the first queue, 3 scanners", ("mean, ms", "most, ms"), tuple(rows))


def static_section(seconds: float, seeds: Sequence[int]) -> Section:
    rows = []
    for scanners, most in ((3.0, (14, 174)), (5.0, (19, 280))):
        runs = run_jobs([Job(_model(seconds, seed, scanners), "static", most) for seed in seeds], processes=1)
        claims = (
            judge("mean latency", 5.26, fmean(run.latency_mean_s for run in runs), within=0.02),
            judge("dropped", 0.0, float(sum(run.dropped for run in runs))),
            _at_most("fullest queue", 50.0, max(max(run.queue_max) for run in runs)),
        )
        rows.append((f"{scanners:g} scanners, {most[0]} + {most[1]}", claims))
    return Section("Static sizes", ("mean latency, s", "dropped", "fullest queue"), tuple(rows))


def overload_section(seeds: Sequence[int]) -> Section:
    """The real maximum: 10 scanners, 22 orchestrators, 92 catalogs, queues without a limit, 5 s."""
    stages = tuple(StageModel(service=service, capacity=10_000, poll=_POLL) for service in (0.25, 5.0))
    models = [Model(stages=stages, load=constant(10.0), seconds=5.0, seed=seed) for seed in seeds]
    runs = run_jobs([Job(model, "static", (22, 92)) for model in models], processes=1)
    claim = judge("second queue", 284.0, max(run.queue_max[1] for run in runs), share=0.1)
    return Section("Overload: 10 scanners, 22 + 92 workers, 5 s", ("second queue at most",), (("", (claim,)),))


def linear_section(seconds: float, seeds: Sequence[int], progress: Progress | None = None) -> Section:
    rows = _table("stages_linear_scores.csv")
    grid: list[Options] = [
        (
            ("period", (float(row["sampling_period_s"]),)),
            ("threshold", (float(row["queue_threshold"]),)),
            ("history", (float(row["sampling_history_s"]),)),
        )
        for row in rows
    ]
    found = sweep(_model(seconds, 1), "linear", _MOST, grid, seeds, progress)
    return _scored("Linear up, averaged down: scores", rows, found, 0.95)


def drain_time_section(seconds: float, seeds: Sequence[int], progress: Progress | None = None) -> Section:
    rows = _table("stages_qdte_scores.csv")
    grid: list[Options] = [
        (
            ("period", (float(row["sampling_period_s"]),)),
            ("stable", (float(row["stable_for_s"]),)),
            ("target", tuple(float(row["latency_target_times_static"]) * wait for wait in _STATIC_WAITS)),
        )
        for row in rows
    ]
    found = sweep(_model(seconds, 1), "drain-time", _MOST, grid, seeds, progress)
    return _scored("Queue drain time: scores", rows, found, 0.97)


def comparison_section(seconds: float, seeds: Sequence[int]) -> Section:
    """Both ways of counting: as the report does, and all that are paid, which only a later rerun of it counted."""
    best = {
        "linear": (("threshold", (75.0,)), ("history", (15.0,)), ("period", (1.0,))),
        "drain-time": (
            ("stable", (5.0,)),
            ("target", tuple(2 * wait for wait in _STATIC_WAITS)),
            ("period", (0.25,)),
        ),
    }
    printed = {"linear": (7.41, 133.9, 15_502.0, 157.5), "drain-time": (10.0, 145.9, 10_784.0, 162.4)}
    rows = []
    for name, options in best.items():
        runs = run_jobs([Job(_model(seconds, seed), name, _MOST, options) for seed in seeds], processes=1)
        rows.append((name, _compared(printed[name], runs)))
    columns = ("orchestrators", "catalogs", "saved, USD", "paid (rerun)", "saved, of paid (rerun)")
    return Section("Side by side: workers on average, and USD a month against 188", columns, tuple(rows))


def _compared(printed: tuple[float, float, float, float], runs: Sequence[Figures]) -> tuple[Claim, ...]:
    first, second = (fmean(run.on_workers[stage] for run in runs) for stage in (0, 1))
    paid = fmean(sum(run.paid_workers) for run in runs)
    return (
        judge("orchestrators", printed[0], first, share=0.03),
        judge("catalogs", printed[1], second, share=0.03),
        judge("saved", printed[2], DOLLARS * (188 - first - second), share=0.1),
        judge("paid", printed[3], paid, share=0.03, note=_RERUN),
        judge("saved of paid", DOLLARS * (188 - printed[3]), DOLLARS * (188 - paid), share=0.1, note=_RERUN),
    )


def _at_most(name: str, limit: float, measured: float) -> Claim:
    return Claim(name, limit, (0.0, limit), measured, "holds" if measured <= limit else "misses", "a limit")


def _scored(title: str, rows: Sequence[dict[str, str]], found: Sequence[Setting], enough: float) -> Section:
    printed = [float(row["score"]) for row in rows]
    ranks = rank_correlation(printed, [setting.score for setting in found])
    alike = Claim("rank correlation", 1.0, (enough, 1.0), ranks, "holds" if ranks >= enough else "misses")
    cells = [
        (setting.name.partition(" ")[2], (judge("score", score, setting.score, within=0.35),))
        for score, setting in zip(printed, found, strict=True)
    ]
    return Section(title, ("score",), (*cells, ("rank correlation", (alike,))))


def _model(seconds: float, seed: int, scanners: float = 3.0) -> Model:
    return report_model(scanners, seconds=seconds, seed=seed, poll=_POLL)


def _table(name: str) -> list[dict[str, str]]:
    text = (resources.files("levada.lab") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
