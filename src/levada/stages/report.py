"""The rules of the report on a three-stage system (2025): linear, and queue drain time."""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence
from functools import partial

from levada.core.errors import UsageError
from levada.stages.rule import LEAST, MOST, OWN, PERIOD, SizingRule, sizing_rule, within
from levada.stages.sample import ON, QUEUE

_COUNT, _SUM, _RING = 2, 3, 4
_STABLE = 2


def linear(
    least: int = 1,
    most: int = 1,
    period: float = 1.0,
    startup: float = 0.0,
    threshold: float = 75.0,
    history: float = 15.0,
    as_written: bool = False,
) -> SizingRule:
    """Linear up, averaged down: `wanted = queue * (most - least) / threshold + least`.

    A larger size applies at once, a smaller one only if the average of the last `history` seconds agrees. It
    follows quickly with few decisions, but keeps a queue, because a short queue means few workers. `threshold` is
    the queue at which all workers run; the higher, the fewer workers and the more latency. By the report's tables,
    fractions of workers are cut off; its text leaves that open, and `as_written` rounds up.
    """
    if not (threshold > 0.0 and period > 0.0 and 0.0 < history <= 100_000 * period):
        raise UsageError(
            "linear: threshold, history and period must be above 0, and history at most 100000 periods, "
            f"not {threshold}, {history} and {period}"
        )
    samples = max(1, round(history / period))
    name = "linear-as-written" if as_written else "linear"
    own = (threshold, samples, as_written)
    return sizing_rule(name, _linear_step, (least, most), period, own, startup=startup, width=_RING + samples)


def _linear_step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    """Memory: the number of samples, the sum of the remembered ones, and these in turn."""
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


def drain_time(
    least: int = 1,
    most: int = 1,
    period: float = 0.25,
    startup: float = 0.0,
    service: float = 1.0,
    target: float = 0.01,
    stable: float = 5.0,
    as_written: bool = False,
) -> SizingRule:
    """Queue drain time (QDTE in the report): a worker more above `target` seconds, one fewer after `stable`.

    As written, `drain = queue / (workers * service_rate)` must be below the target for `stable` seconds, counted
    again after each removal. By its tables, the report ran another rule: the formula divides by the service *time*,
    `stable` counts samples, and a removal does not reset the count. `service` is the seconds per job, which must be
    given. It adds at most one worker per sample, so it is late after a step of the load.
    """
    if not (service > 0.0 and target >= 0.0 and stable >= 0.0):
        raise UsageError("drain-time: service must be above 0, target and stable 0 or more")
    name = "drain-time-as-written" if as_written else "drain-time"
    own = (service, target, stable, as_written)
    return sizing_rule(name, _drain_time_step, (least, most), period, own, startup=startup, width=_STABLE + 1)


def _drain_time_step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    """Memory: the number of samples for which the queue has been short."""
    service, target, stable = parameters[OWN], parameters[OWN + 1], parameters[OWN + 2]
    as_written = parameters[OWN + 3] > 0.0
    now = max(sample[ON], 1.0)
    drain = sample[QUEUE] * service / now if as_written else sample[QUEUE] / (now * service)
    if drain > target:
        memory[_STABLE] = 0.0
        return within(sample[ON] + 1.0, parameters)
    memory[_STABLE] += 1.0
    calm = memory[_STABLE] * parameters[PERIOD] if as_written else memory[_STABLE]
    if calm < stable:
        return within(sample[ON], parameters)
    if as_written:
        memory[_STABLE] = 0.0
    return within(sample[ON] - 1.0, parameters)


linear_as_written = partial(linear, as_written=True)
drain_time_as_written = partial(drain_time, as_written=True)
