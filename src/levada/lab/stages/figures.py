"""How did a run go, in figures?"""

from __future__ import annotations

import msgspec
import numpy as np

from levada.lab.stages.machine import Machine
from levada.lab.stages.places import (
    A_BUSY,
    A_LEAVING,
    A_ON,
    A_QUEUE,
    C_DROPPED,
    C_LOOKS,
    C_LOOKS_SUM,
    C_MOST,
    C_TAKEN,
    HELD_SECONDS,
    R_LONGEST,
    R_WAITED,
    T_COMPLETED,
    T_CRASHED,
    T_DECISIONS,
    T_MADE,
    T_SWITCHED,
)

__all__ = ["Figures", "figures_of"]


class Figures(msgspec.Struct, frozen=True):
    """Lists have one entry per stage."""

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
    decisions: int  # samples at which a stage was told another number
    switches: int  # workers switched on or off
    throughput_per_min: float
    crashes: int
    held_s: float  # for so long the source was held back

    @property
    def drop_rate(self) -> float:
        return self.dropped / max(1, self.generated)


def figures_of(m: Machine, seconds: float) -> Figures:
    totals, areas, counts = m.integers, m.rates, m.counts
    completed = int(totals[T_COMPLETED])
    latency = m.latencies[:completed]
    paid = areas[:, A_ON] + areas[:, A_LEAVING]
    p50, p99 = np.quantile(latency, [0.5, 0.99]) if completed else (0.0, 0.0)
    return Figures(
        generated=int(totals[T_MADE]),
        completed=completed,
        dropped=int(counts[:, C_DROPPED].sum()),
        latency_mean_s=float(latency.mean()) if completed else 0.0,
        latency_p50_s=float(p50),
        latency_p99_s=float(p99),
        latency_max_s=float(latency.max()) if completed else 0.0,
        queue_mean=(areas[:, A_QUEUE] / seconds).tolist(),
        queue_max=counts[:, C_MOST].tolist(),
        queue_event_mean=(counts[:, C_LOOKS_SUM] / np.maximum(1, counts[:, C_LOOKS])).tolist(),
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
