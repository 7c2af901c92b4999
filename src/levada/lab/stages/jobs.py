"""Many runs on all cores, and sweeps over the settings of a controller."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from levada.core.errors import UsageError
from levada.lab.parallel import Progress, on_all_cores
from levada.lab.stages.figures import StageFigures, scores
from levada.lab.stages.model import Model, mean_time
from levada.lab.stages.runs import simulate
from levada.stages.rule import SizingRule
from levada.stages.rules import rule_named

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
    jobs = [
        StageJob(msgspec.structs.replace(model, seed=seed), controller, most, options)
        for options in grid
        for seed in seeds
    ]
    found = run_jobs(jobs, progress, processes)
    runs = [found[start : start + len(seeds)] for start in range(0, len(found), len(seeds))]
    names = [jobs[place * len(seeds)].name for place in range(len(grid))]
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
