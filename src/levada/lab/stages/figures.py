"""Figures of a run, and the score of the report."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from levada.lab.stages.machine import (
    A_BUSY,
    A_LEAVING,
    A_ON,
    A_QUEUE,
    C_DROPPED,
    C_LENGTHS,
    C_MOST,
    C_READINGS,
    C_TAKEN,
    HELD_SECONDS,
    R_LONGEST,
    R_WAITED,
    T_COMPLETED,
    T_CRASHED,
    T_DECISIONS,
    T_GENERATED,
    T_SWITCHED,
    Machine,
)


class StageFigures(msgspec.Struct, frozen=True):
    """Figures of a run. Lists have one entry per stage."""

    generated: int
    completed: int
    dropped: int
    latency_mean_s: float
    latency_p50_s: float
    latency_p99_s: float
    latency_max_s: float
    queue_mean: list[float]  # over time
    queue_max: list[int]
    queue_event_mean: list[float]  # over pushes and pops, as the report counts
    queue_latency_mean_s: list[float]
    queue_latency_max_s: list[float]
    on_workers: list[float]
    paid_workers: list[float]  # on, or off and still busy
    busy_workers: list[float]
    up_s: list[float]
    idle_s: list[float]
    decisions: int  # samples that changed the number of workers of a stage
    switches: int  # workers switched on or off
    throughput_per_min: float
    crashes: int
    held_s: float  # seconds for which the source was held

    @property
    def drop_rate(self) -> float:
        return self.dropped / max(1, self.generated)


def figures_of(m: Machine, seconds: float) -> StageFigures:
    """The figures of a machine at the end of its run."""
    totals, areas, counts = m.integers, m.rates, m.counts
    completed = int(totals[T_COMPLETED])
    latency = m.latencies[:completed]
    paid = areas[:, A_ON] + areas[:, A_LEAVING]
    p50, p99 = np.quantile(latency, [0.5, 0.99]) if completed else (0.0, 0.0)
    return StageFigures(
        generated=int(totals[T_GENERATED]),
        completed=completed,
        dropped=int(counts[:, C_DROPPED].sum()),
        latency_mean_s=float(latency.mean()) if completed else 0.0,
        latency_p50_s=float(p50),
        latency_p99_s=float(p99),
        latency_max_s=float(latency.max()) if completed else 0.0,
        queue_mean=(areas[:, A_QUEUE] / seconds).tolist(),
        queue_max=counts[:, C_MOST].tolist(),
        queue_event_mean=(counts[:, C_LENGTHS] / np.maximum(1, counts[:, C_READINGS])).tolist(),
        queue_latency_mean_s=(areas[:, R_WAITED] / np.maximum(1, counts[:, C_TAKEN])).tolist(),
        queue_latency_max_s=areas[:, R_LONGEST].tolist(),
        on_workers=(areas[:, A_ON] / seconds).tolist(),
        paid_workers=(paid / seconds).tolist(),
        busy_workers=(areas[:, A_BUSY] / seconds).tolist(),
        up_s=paid.tolist(),
        idle_s=(paid - areas[:, A_BUSY]).tolist(),
        decisions=int(totals[T_DECISIONS]),
        switches=int(totals[T_SWITCHED]),
        throughput_per_min=60.0 * completed / seconds,
        crashes=int(totals[T_CRASHED]),
        held_s=float(m.floats[HELD_SECONDS]),
    )


WEIGHTS = {
    "latency_max": 0.2,
    "latency_mean": 1.0,
    "orchestrators": 0.5,
    "catalogs": 0.5,
    "throughput": 0.25,
    "queue": 0.2,
    "drops": 0.3,
    "decisions": 0.25,
}
_MORE_IS_BETTER = 4  # index of the throughput


def scores(runs: Sequence[Sequence[StageFigures]]) -> list[float]:
    """The score of each setting, from the figures of its seeds."""
    rows = np.array([np.mean([_row(each) for each in figures], axis=0) for figures in runs])
    rows[:, _MORE_IS_BETTER] *= -1.0
    spans = rows.max(axis=0) - rows.min(axis=0)
    good = np.where(spans > 0.0, (rows.max(axis=0) - rows) / np.where(spans > 0.0, spans, 1.0), 1.0)
    found: list[float] = (good @ np.array(list(WEIGHTS.values()))).tolist()
    return found


def _row(figures: StageFigures) -> list[float]:
    """Workers as the report counts them; with more than two stages, the first and the sum of the others."""
    first, *others = figures.on_workers
    queue = sum(figures.queue_event_mean) / len(figures.queue_event_mean)
    return [
        figures.latency_max_s,
        figures.latency_mean_s,
        first,
        sum(others),
        figures.throughput_per_min,
        queue,
        figures.drop_rate,
        figures.decisions,
    ]


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation; scores have no ties."""
    ranks = [np.argsort(np.argsort(np.array(each))) for each in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
