"""Which of several settings is best? The report's score: figures scaled to 0..1 over all compared, and weighed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.lab.stages.figures import Figures

__all__ = ["WEIGHTS", "rank_correlation", "scores"]

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
_MORE_IS_BETTER = 4  # the place of the throughput


def scores(runs: Sequence[Sequence[Figures]]) -> list[float]:
    """One per setting, each with the figures of its seeds."""
    rows = np.array([np.mean([_row(each) for each in figures], axis=0) for figures in runs])
    rows[:, _MORE_IS_BETTER] *= -1.0
    spans = rows.max(axis=0) - rows.min(axis=0)
    good = np.where(spans > 0.0, (rows.max(axis=0) - rows) / np.where(spans > 0.0, spans, 1.0), 1.0)
    found: list[float] = (good @ np.array(list(WEIGHTS.values()))).tolist()
    return found


def _row(figures: Figures) -> list[float]:
    """Workers as the report counts them; with other than two stages, the first and all others."""
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
    """Spearman's; ties do not come up among scores."""
    ranks = [np.argsort(np.argsort(np.array(each))) for each in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
