"""All grouping methods on the same streams, and their chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import msgspec

from levada.grouping.methods import METHODS
from levada.lab.grouping.cells import GroupingJob, GroupingRow, Growth, run_jobs
from levada.lab.parallel import Progress
from levada.lab.pictures import blank_figure, save_picture

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


class GroupingVerdict(msgspec.Struct, frozen=True):
    """How levelled grouping stands against its rivals."""

    cells: int
    dominated: tuple[str, ...]  # cells where a rival is better on both figures
    lower_on_both: int  # cells with less deviation and less cost than dynamic key grouping
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
    """A cell per stream, number of workers and method. Real streams have no randomness but the keyed hash."""
    jobs = [
        GroupingJob(method, stream, count, seed, records)
        for stream in streams
        for count in workers
        for method in methods
        for seed in seeds
    ]
    found = run_jobs(jobs, progress, processes)
    return [_cell(found[start : start + len(seeds)]) for start in range(0, len(found), len(seeds))]


def judge_ours(cells: Sequence[Cell]) -> GroupingVerdict:
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
    return GroupingVerdict(len(ours), tuple(dominated), lower, tuple(uneven))


def _worse_on_both(one: Cell, other: Cell) -> bool:
    return one.deviation_percent > other.deviation_percent and one.distribution_cost > other.distribution_cost


def _cell(rows: Sequence[GroupingRow]) -> Cell:
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


def draw(growths: Sequence[Growth], cells: Sequence[Cell], path: Path) -> None:
    """Left: the workers of the hot key over time. Right: every cell of the comparison, one mark per method."""
    figure = blank_figure(12, 5)
    left, right = figure.subplots(1, 2)
    if growths:
        _draw_growth(left, growths)
    if cells:
        _draw_cells(right, cells)
    save_picture(figure, path)


def _draw_growth(axes: Any, growths: Sequence[Growth]) -> None:
    for growth in growths:
        share = [second / max(1, len(growth.workers) - 1) for second in range(len(growth.workers))]
        label = f"{growth.method}, {len(growth.workers):,} s"
        axes.plot(share, growth.workers, label=label, color="black" if growth.method == _OURS else None)
    axes.set_xlabel("share of the run; the key is hot (80 %) for the first half of the records")
    axes.set_ylabel("workers that get the hot key, of 10")
    axes.legend(frameon=False)


def _draw_cells(axes: Any, cells: Sequence[Cell]) -> None:
    for method in dict.fromkeys(cell.method for cell in cells):
        own = [cell for cell in cells if cell.method == method]
        axes.scatter(
            [max(1e-5, cell.deviation_percent) for cell in own],
            [cell.distribution_cost for cell in own],
            label=method,
            color="black" if method == _OURS else None,
            s=24,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("load deviation, percent")
    axes.set_ylabel("distribution cost, workers per key")
    axes.legend(frameon=False)
