"""Linear up, averaged down: as many workers as the queue is long, in proportion.

Source: the report on a three-stage system of 2025. `wanted = queue * (most - least) / threshold + least`; more than
now is obeyed at once, less only if the average of the last `history` seconds agrees.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

from levada.errors import UsageError
from levada.stages.rule import LEAST, MOST, OWN, SizingRule, sizing_rule, within
from levada.stages.sample import ON, QUEUE

__all__ = ["linear"]

_COUNT, _SUM, _RING = 2, 3, 4


def linear(
    least: int = 1,
    most: int = 1,
    period: float = 1.0,
    startup: float = 0.0,
    threshold: float = 75.0,
    history: float = 15.0,
    as_written: bool = False,
) -> SizingRule:
    """Quick to follow and cheap in decisions; keeps the queue up, for a short queue means few workers.

    `threshold` is the queue at which all workers run; the higher, the fewer workers and the more latency. `history`
    is how long the queue must have been short. Told by the report's tables, a fraction of a worker was cut off; its
    text leaves that open, and rounds up if it is taken `as_written`.
    """
    if not (threshold > 0.0 and period > 0.0 and 0.0 < history <= 100_000 * period):
        raise UsageError(
            "linear: threshold, history and period must be above 0, and history at most 100000 periods, "
            f"not {threshold}, {history} and {period}"
        )
    samples = max(1, round(history / period))
    name = "linear-as-written" if as_written else "linear"
    own = (threshold, samples, as_written)
    return sizing_rule(name, _step, (least, most), period, own, startup=startup, width=_RING + samples)


def _step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    """Memory: samples so far, the sum of those remembered, and these in turn."""
    samples, up = int(parameters[OWN + 1]), parameters[OWN + 2] > 0.0
    place = _RING + int(memory[_COUNT]) % samples
    memory[_SUM] += sample[QUEUE] - memory[place]
    memory[place] = sample[QUEUE]
    memory[_COUNT] += 1.0
    now, wanted = sample[ON], _wanted(sample[QUEUE], parameters)
    if wanted > now:
        return _whole(wanted, up, parameters)
    if memory[_COUNT] < samples:
        return within(now, parameters)
    averaged = _wanted(memory[_SUM] / samples, parameters)
    if wanted <= averaged < now:
        return _whole(averaged, up, parameters)
    return within(now, parameters)


def _wanted(queue: float, parameters: Sequence[float]) -> float:
    return queue * (parameters[MOST] - parameters[LEAST]) / parameters[OWN] + parameters[LEAST]


def _whole(wanted: float, up: bool, parameters: Sequence[float]) -> float:
    return within(float(math.ceil(wanted) if up else math.floor(wanted)), parameters)
