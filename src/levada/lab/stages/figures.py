"""Figures of a run, and the score of the report."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from levada.lab.stages import machine


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


def figures_of(m: machine.Machine, seconds: float) -> StageFigures:
    """The figures of a machine at the end of its run."""
    totals, areas, counts = m.integers, m.rates, m.counts
    completed = int(totals[machine.T_COMPLETED])
    latency = m.latencies[:completed]
    paid = areas[:, machine.A_ON] + areas[:, machine.A_LEAVING]
    p50, p99 = np.quantile(latency, [0.5, 0.99]) if completed else (0.0, 0.0)
    return StageFigures(
        generated=int(totals[machine.T_GENERATED]),
        completed=completed,
        dropped=int(counts[:, machine.C_DROPPED].sum()),
        latency_mean_s=float(latency.mean()) if completed else 0.0,
        latency_p50_s=float(p50),
        latency_p99_s=float(p99),
        latency_max_s=float(latency.max()) if completed else 0.0,
        queue_mean=(areas[:, machine.A_QUEUE] / seconds).tolist(),
        queue_max=counts[:, machine.C_MOST].tolist(),
        queue_event_mean=(counts[:, machine.C_LENGTHS] / np.maximum(1, counts[:, machine.C_READINGS])).tolist(),
        queue_latency_mean_s=(areas[:, machine.R_WAITED] / np.maximum(1, counts[:, machine.C_TAKEN])).tolist(),
        queue_latency_max_s=areas[:, machine.R_LONGEST].tolist(),
        on_workers=(areas[:, machine.A_ON] / seconds).tolist(),
        paid_workers=(paid / seconds).tolist(),
        busy_workers=(areas[:, machine.A_BUSY] / seconds).tolist(),
        up_s=paid.tolist(),
        idle_s=(paid - areas[:, machine.A_BUSY]).tolist(),
        decisions=int(totals[machine.T_DECISIONS]),
        switches=int(totals[machine.T_SWITCHED]),
        throughput_per_min=60.0 * completed / seconds,
        crashes=int(totals[machine.T_CRASHED]),
        held_s=float(m.floats[machine.HELD_SECONDS]),
    )


# Of the latency at most and on average, orchestrators, catalogs, throughput, queue, drops and decisions.
_WEIGHTS = (0.2, 1.0, 0.5, 0.5, 0.25, 0.2, 0.3, 0.25)
_MORE_IS_BETTER = 4  # index of the throughput


def scores(runs: Sequence[Sequence[StageFigures]]) -> list[float]:
    """The score of each setting, from the figures of its seeds."""
    rows = np.array([np.mean([_row(each) for each in figures], axis=0) for figures in runs])
    rows[:, _MORE_IS_BETTER] *= -1.0
    spans = rows.max(axis=0) - rows.min(axis=0)
    good = np.where(spans > 0.0, (rows.max(axis=0) - rows) / np.where(spans > 0.0, spans, 1.0), 1.0)
    found: list[float] = (good @ np.array(_WEIGHTS)).tolist()
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
