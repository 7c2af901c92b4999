"""KEDA's queue-length trigger: so many jobs, waiting or in work, per worker.

Source: KEDA's documentation of its RabbitMQ scaler (mode QueueLength), which the horizontal pod autoscaler obeys.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

from levada.errors import UsageError
from levada.stages.hpa import stabilised
from levada.stages.rule import OWN, SizingRule, sizing_rule
from levada.stages.sample import BUSY, ON, QUEUE

__all__ = ["keda"]


def keda(
    least: int = 1,
    most: int = 1,
    period: float = 15.0,
    startup: float = 0.0,
    jobs: float = 1.0,
    window: float = 300.0,
    tolerance: float = 0.1,
) -> SizingRule:
    """`jobs` per worker: below 1 there are spare workers, above 1 a queue is meant to be. Within the autoscaler's
    `tolerance` nothing is changed."""
    if not jobs > 0.0 or not 0.0 <= window <= 100_000 * period or not period > 0.0:
        raise UsageError(f"keda: jobs must be above 0, window 0 or more, not {jobs} and {window}")
    if not 0.0 <= tolerance <= 1.0:
        raise UsageError(f"keda: tolerance must be between 0 and 1, not {tolerance}")
    samples = max(1, round(window / period))
    own = (samples, jobs, tolerance)
    return sizing_rule("keda", _step, (least, most), period, own, startup=startup, width=3 + samples)


def _step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    now = max(sample[ON], 1.0)
    desired = (sample[QUEUE] + sample[BUSY]) / parameters[OWN + 1]
    if abs(desired / now - 1.0) <= parameters[OWN + 2]:
        desired = now
    limited = min(float(math.ceil(desired)), max(2.0 * now, now + 4.0))
    return stabilised(memory, parameters, sample[ON], limited)
