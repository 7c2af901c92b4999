"""Queue drain time: one worker more while the queue takes too long to empty, one less once it is stable.

Source: QDTE in the report on a three-stage system of 2025. Written: `drain = queue / (workers * service_rate)`,
stable for so many seconds, and begun anew after each removal. Really run, as its tables tell: the formula divides
by the service *time*, stability is counted in samples, and a removal does not reset the count.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

from levada.errors import UsageError
from levada.stages.rule import OWN, PERIOD, SizingRule, sizing_rule, within
from levada.stages.sample import ON, QUEUE

__all__ = ["drain_time"]

_STABLE = 2


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
    """Needs to be told the seconds of `service`. Adds one worker per sample at most, so it is late for a step.

    `target` is the drain time in seconds above which a worker is added; `stable` how long (or how many samples) it
    must have been below before one goes.
    """
    if not (service > 0.0 and target >= 0.0 and stable >= 0.0):
        raise UsageError("drain-time: service must be above 0, target and stable 0 or more")
    name = "drain-time-as-written" if as_written else "drain-time"
    own = (service, target, stable, as_written)
    return sizing_rule(name, _step, (least, most), period, own, startup=startup, width=_STABLE + 1)


def _step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    """Memory: for how many samples the queue has been short."""
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
