"""How evenly was a stream shared out, and how widely was each key spread?"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

__all__ = ["Figures", "figures_of"]

Integers = np.ndarray[Any, np.dtype[np.int64]]
_DENSE = 1 << 28  # pairs of key and worker that are marked one by one, in bytes


class Figures(msgspec.Struct, frozen=True):
    deviation_percent: float  # standard deviation over workers of each worker's share of records
    distribution_cost: float  # workers per distinct key
    max_over_mean: float  # load of the fullest worker
    latency_ms: float  # until the last record was served
    throughput: float  # records per second


def figures_of(keys: Integers, chosen: Integers, workers: int, seconds: float) -> Figures:
    shares = np.bincount(chosen, minlength=workers) / len(keys)
    return Figures(
        deviation_percent=float(100.0 * shares.std()),
        distribution_cost=_pairs(keys, chosen, workers) / len(np.unique(keys)),
        max_over_mean=float(shares.max() * workers),
        latency_ms=1000.0 * seconds,
        throughput=len(keys) / seconds,
    )


def _pairs(keys: Integers, chosen: Integers, workers: int) -> int:
    codes = keys * workers + chosen
    size = (int(keys.max()) + 1) * workers
    if size > _DENSE:
        return len(np.unique(codes))
    seen = np.zeros(size, np.bool_)
    seen[codes] = True
    return int(np.count_nonzero(seen))
