"""Kubernetes' horizontal pod autoscaler: keep the share of busy workers at a target.

Source: the algorithm in Kubernetes' documentation. `desired = ceil(now * measured / target)`, left alone within a
tolerance; up to twice as many or four more per step; down only to the highest wish of a stabilisation window.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

from levada.errors import UsageError
from levada.stages.rule import OWN, SizingRule, sizing_rule, within
from levada.stages.sample import BUSY, ON, QUEUE

__all__ = ["hpa", "stabilised"]

_COUNT, _RING = 2, 3


def hpa(
    least: int = 1,
    most: int = 1,
    period: float = 15.0,
    startup: float = 0.0,
    target: float = 0.8,
    window: float = 300.0,
    tolerance: float = 0.1,
) -> SizingRule:
    """`target` is the share of workers that are busy; the lower, the more spare ones. Sees no queue: what waits
    counts as demand here, or a full stage could never ask for more than 1/target of what it has. Within the
    `tolerance` nothing is changed: more saves decisions."""
    if not 0.0 < target <= 1.0 or not 0.0 <= window <= 100_000 * period or not period > 0.0:
        raise UsageError(f"hpa: target must be above 0 and at most 1, window 0 or more, not {target} and {window}")
    if not 0.0 <= tolerance <= 1.0:
        raise UsageError(f"hpa: tolerance must be between 0 and 1, not {tolerance}")
    samples = max(1, round(window / period))
    own = (samples, target, tolerance)
    return sizing_rule("hpa", _step, (least, most), period, own, startup=startup, width=_RING + samples)


def _step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    now = max(sample[ON], 1.0)
    ratio = (sample[BUSY] + min(sample[QUEUE], now)) / now / parameters[OWN + 1]
    desired = now if abs(ratio - 1.0) <= parameters[OWN + 2] else float(math.ceil(now * ratio))
    return stabilised(memory, parameters, sample[ON], min(desired, max(2.0 * now, now + 4.0)))


def stabilised(memory: MutableSequence[float], parameters: Sequence[float], now: float, desired: float) -> float:
    """The highest wish of the window, if that is less than now. Memory: wishes so far, and the latest in turn."""
    samples = int(parameters[OWN])
    memory[_RING + int(memory[_COUNT]) % samples] = desired
    memory[_COUNT] += 1.0
    highest = desired
    for place in range(_RING, _RING + samples):
        highest = max(highest, memory[place])
    return within(desired if desired >= now else min(now, highest), parameters)
