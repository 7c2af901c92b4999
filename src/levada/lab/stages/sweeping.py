"""How do many settings of one controller compare?"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from levada.lab.stages.figures import Figures
from levada.lab.stages.jobs import Job, Options, Progress, run_jobs
from levada.lab.stages.model import Model
from levada.lab.stages.scores import scores

__all__ = ["Setting", "sweep"]


class Setting(msgspec.Struct, frozen=True):
    """Means over the seeds; the score is relative to the other settings."""

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
    """In the order of the grid."""
    jobs = [
        Job(msgspec.structs.replace(model, seed=seed), controller, most, options)
        for options in grid
        for seed in seeds
    ]
    found = run_jobs(jobs, progress, processes)
    runs = [found[start : start + len(seeds)] for start in range(0, len(found), len(seeds))]
    names = [jobs[place * len(seeds)].name for place in range(len(grid))]
    return [_setting(*each) for each in zip(names, scores(runs), runs, strict=True)]


def _setting(name: str, score: float, runs: Sequence[Figures]) -> Setting:
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
