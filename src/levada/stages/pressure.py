"""Must the source wait? When a queue would fill up before its stage can grow."""

from __future__ import annotations

from typing import Any

from levada.stages.sample import CAPACITY, QUEUE

__all__ = ["must_hold"]

_HIGH, _LOW = 0.5, 0.25  # shares of a queue's room: hold above the one, let go below the other


def must_hold(held: bool, samples: Any, before: Any) -> bool:
    """By the queues now and at the sample before: what grows is looked at two samples ahead. Rows are stages."""
    mark = _LOW if held else _HIGH
    for place in range(len(samples)):
        sample = samples[place]
        growth = max(0.0, sample[QUEUE] - before[place])
        if sample[QUEUE] + 2.0 * growth >= mark * sample[CAPACITY]:
            return True
    return False
