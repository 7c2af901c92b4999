"""Runs of the simulator under a controller: one, many on all cores, and sweeps over the settings of a controller."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import numpy as np

from levada.core.compile_cache import compiled, uncollected
from levada.core.errors import UsageError
from levada.lab.parallel import Progress, on_all_cores
from levada.lab.pictures import blank_figure, save_picture
from levada.lab.stages.figures import StageFigures, figures_of, scores
from levada.lab.stages.machine import build_machine, run_samples
from levada.lab.stages.model import Model, mean_time
from levada.stages.rule import SizingRule
from levada.stages.rules import rule_named
from levada.stages.sample import FIELDS


class Course(msgspec.Struct, frozen=True):
    """A run over time: at each snapshot, per stage, the queue, workers on, and workers paid."""

    figures: StageFigures
    at: Any
    queue: Any
    on: Any
    paid: Any


def simulate(model: Model, rules: tuple[SizingRule, ...]) -> StageFigures:
    """Run the model; one rule per stage, all of one kind and with one period."""
    return follow(model, rules, 0).figures


def follow(model: Model, rules: tuple[SizingRule, ...], snapshots: int = 2_000) -> Course:
    """Run the model, and keep snapshots of it."""
    if len(rules) != len(model.stages) or len({(rule.step, rule.period) for rule in rules}) != 1:
        raise UsageError("each stage needs a rule, all of one kind and with one period")
    machine, period = build_machine(model, rules), rules[0].period
    samples = int(model.seconds / period)
    every = max(1, samples // snapshots) if snapshots else samples + 1
    course = np.zeros((samples // every + 1, len(rules), 3))
    parameters = np.zeros((len(rules), max(len(rule.parameters) for rule in rules)))
    for place, rule in enumerate(rules):
        parameters[place, : len(rule.parameters)] = rule.parameters
    memory = np.zeros((len(rules), max(rule.width for rule in rules)))
    samples_room = np.zeros((len(rules), FIELDS + 2))
    samples_room[:, FIELDS] = [stage.first for stage in model.stages]
    budget = math.inf if model.budget is None else float(model.budget)
    run: Callable[..., int] = compiled(run_samples, allocates=False, step=rules[0].step)
    how = np.array([period, model.idle_first, model.hold, budget, every])
    with uncollected():
        seen = run(machine.floats, machine.integers, memory, parameters, samples_room, how, course)
    at = period * every * np.arange(seen)
    figures = figures_of(machine, model.seconds)
    return Course(figures, at, course[:seen, :, 0], course[:seen, :, 1], course[:seen, :, 2])


Options = tuple[tuple[str, tuple[float, ...]], ...]  # a value for all stages, or one for each


class StageJob(msgspec.Struct, frozen=True):
    """A run: `most` workers per stage, which a static controller has from the start."""

    model: Model
    controller: str
    most: tuple[int, ...]
    options: Options = ()

    @property
    def name(self) -> str:
        chosen = (f"{key}={'/'.join(f'{value:g}' for value in values)}" for key, values in self.options)
        return " ".join((self.controller, *chosen))


def begun(model: Model, first: Sequence[int]) -> Model:
    """The model with these numbers of workers at the start."""
    pairs = zip(model.stages, first, strict=True)
    return msgspec.structs.replace(
        model, stages=tuple(msgspec.structs.replace(stage, first=count) for stage, count in pairs)
    )


def rules_of(job: StageJob) -> tuple[SizingRule, ...]:
    """The rules of a job. Drain time needs the service times; by default they are the model's."""
    for key, values in job.options:
        if len(values) not in (1, len(job.most)):
            raise UsageError(f"{key}: one value for all {len(job.most)} stages or one for each, not {len(values)}")
    rules = []
    for place, (most, stage) in enumerate(zip(job.most, job.model.stages, strict=True)):
        own: dict[str, float] = {"startup": stage.startup}
        if job.controller.startswith("drain-time"):
            own["service"] = mean_time(stage)
        own |= {key: values[place] if len(values) > 1 else values[0] for key, values in job.options}
        rules.append(rule_named(job.controller, min(1, most), most, own))
    return tuple(rules)


def run_jobs(
    jobs: Sequence[StageJob], progress: Progress | None = None, processes: int | None = None
) -> list[StageFigures]:
    """The figures, in the order of the jobs."""
    for job in jobs[:1]:
        rules_of(job)  # a wrong option fails at once, and in this process
    return on_all_cores(_run, jobs, lambda job: job.name, progress, processes)


def run_groups(
    groups: Sequence[Sequence[StageJob]], progress: Progress | None = None, processes: int | None = None
) -> list[list[StageFigures]]:
    """As `run_jobs`, for all groups together: the figures of each group."""
    found = iter(run_jobs([job for group in groups for job in group], progress, processes))
    return [[next(found) for _ in group] for group in groups]


def _run(job: StageJob) -> StageFigures:
    model = begun(job.model, job.most) if job.controller == "static" else job.model
    return simulate(model, rules_of(job))


class Setting(msgspec.Struct, frozen=True):
    """A setting and its means over the seeds; the score is relative to the other settings."""

    name: str
    score: float
    on_workers: list[float]
    paid_workers: float
    latency_mean_s: float
    wait_mean_s: float
    drop_rate: float
    decisions: float
    throughput_per_min: float


def sweep(
    model: Model,
    controller: str,
    most: tuple[int, ...],
    grid: Sequence[Options],
    seeds: Sequence[int],
    progress: Progress | None = None,
    processes: int | None = None,
) -> list[Setting]:
    """Run every setting on every seed; in the order of the grid."""
    models = [msgspec.structs.replace(model, seed=seed) for seed in seeds]
    groups = [[StageJob(each, controller, most, options) for each in models] for options in grid]
    runs = run_groups(groups, progress, processes)
    names = [group[0].name for group in groups]
    return [_setting(*each) for each in zip(names, scores(runs), runs, strict=True)]


def _setting(name: str, score: float, runs: Sequence[StageFigures]) -> Setting:
    return Setting(
        name=name,
        score=score,
        on_workers=[fmean(each) for each in zip(*(run.on_workers for run in runs), strict=True)],
        paid_workers=fmean(sum(run.paid_workers) for run in runs),
        latency_mean_s=fmean(run.latency_mean_s for run in runs),
        wait_mean_s=fmean(sum(run.queue_latency_mean_s) for run in runs),
        drop_rate=fmean(run.drop_rate for run in runs),
        decisions=fmean(run.decisions for run in runs),
        throughput_per_min=fmean(run.throughput_per_min for run in runs),
    )


def draw_course(course: Course, path: Path) -> None:
    """Queues over time above, workers on and paid below."""
    figure = blank_figure(10, 6)
    above, below = figure.subplots(2, 1, sharex=True)
    for stage in range(course.queue.shape[1]):
        above.plot(course.at, course.queue[:, stage], label=f"queue {stage + 1}", linewidth=0.8)
        (line,) = below.plot(course.at, course.on[:, stage], label=f"stage {stage + 1}, on", linewidth=0.8)
        below.plot(course.at, course.paid[:, stage], color=line.get_color(), linewidth=0.8, alpha=0.4)
    above.set_ylabel("jobs waiting")
    below.set_ylabel("workers (pale: paid)")
    below.set_xlabel("seconds")
    for axes in (above, below):
        axes.legend(frameon=False)
    save_picture(figure, path)


def draw_sweep(rows: Sequence[str], columns: Sequence[str], values: Any, label: str, path: Path) -> None:
    """A heat map; settings that were not run are white."""
    figure = blank_figure(2 + 0.9 * len(columns), 1.5 + 0.5 * len(rows))
    axes = figure.subplots()
    image = axes.imshow(values, aspect="auto", cmap="viridis")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    figure.colorbar(image, label=label)
    save_picture(figure, path)
