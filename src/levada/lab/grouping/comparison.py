"""How do all methods do on the same streams, and is any of them better than ours on both figures?"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

import msgspec

from levada.grouping.methods import METHODS
from levada.lab.grouping.jobs import Job, Progress, Row, run_jobs

__all__ = ["SKEWS", "WORKERS", "Cell", "Verdict", "compare", "judge_ours"]

SKEWS = tuple(str(skew) for skew in range(0, 101, 10))
WORKERS = (10, 50, 100)
_OURS = "levelled"
_RIVALS = ("partial", "dynamic", "d-choices", "w-choices")
_EVEN = 1.05


class Cell(msgspec.Struct, frozen=True):
    """One method on one stream: means over seeds, and their standard deviations."""

    stream: str
    workers: int
    method: str
    deviation_percent: float
    deviation_spread: float
    distribution_cost: float
    cost_spread: float
    max_over_mean: float
    worst_over_mean: float  # of all seeds
    latency_ms: float


class Verdict(msgspec.Struct, frozen=True):
    cells: int
    dominated: tuple[str, ...]  # where a rival is better on both figures
    lower_on_both: int  # cells where ours has less deviation and less cost than dynamic key grouping
    uneven: tuple[str, ...]  # at 10 workers and r <= 90: above 1.05 of the mean, or dearer than dynamic


def compare(
    streams: Sequence[str],
    workers: Sequence[int],
    seeds: Sequence[int],
    records: int,
    methods: Sequence[str] = METHODS,
    progress: Progress | None = None,
    processes: int | None = None,
) -> list[Cell]:
    """Real streams have no chance in them but the secret of ours."""
    jobs = [
        Job(method, stream, count, seed, records)
        for stream in streams
        for count in workers
        for method in methods
        for seed in seeds
    ]
    found = run_jobs(jobs, progress, processes)
    return [_cell(found[start : start + len(seeds)]) for start in range(0, len(found), len(seeds))]


def judge_ours(cells: Sequence[Cell]) -> Verdict:
    by_place = {(cell.stream, cell.workers, cell.method): cell for cell in cells}
    ours = [cell for cell in cells if cell.method == _OURS]
    dominated, uneven, lower = [], [], 0
    for own in ours:
        place = f"{own.stream}, {own.workers} workers"
        rivals = [by_place.get((own.stream, own.workers, rival)) for rival in _RIVALS]
        dominated += [f"{place}: {rival.method}" for rival in rivals if rival and _worse_on_both(own, rival)]
        dynamic = by_place.get((own.stream, own.workers, "dynamic"))
        lower += dynamic is not None and _worse_on_both(dynamic, own)
        if dynamic and own.workers == 10 and own.stream.isdecimal() and int(own.stream) <= 90:
            even = own.worst_over_mean <= _EVEN and own.distribution_cost <= dynamic.distribution_cost
            uneven += [] if even else [place]
    return Verdict(len(ours), tuple(dominated), lower, tuple(uneven))


def _worse_on_both(one: Cell, other: Cell) -> bool:
    return one.deviation_percent > other.deviation_percent and one.distribution_cost > other.distribution_cost


def _cell(rows: Sequence[Row]) -> Cell:
    job, figures = rows[0].job, [row.figures for row in rows]
    deviations = [each.deviation_percent for each in figures]
    costs = [each.distribution_cost for each in figures]
    return Cell(
        job.stream,
        job.workers,
        job.method,
        fmean(deviations),
        pstdev(deviations),
        fmean(costs),
        pstdev(costs),
        fmean(each.max_over_mean for each in figures),
        max(each.max_over_mean for each in figures),
        fmean(each.latency_ms for each in figures),
    )
