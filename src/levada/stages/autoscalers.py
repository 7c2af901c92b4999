"""Rules of other autoscalers: static, Kubernetes HPA, KEDA, DS2."""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

from levada.core.errors import UsageError
from levada.stages.rule import MOST, OWN, SizingRule, SizingStep, sizing_rule, within
from levada.stages.sample import ARRIVED, BUSY, DONE, HELD, NOW, ON, QUEUE

_COUNT, _RING = 2, 3
_BEGAN, _ARRIVED, _DONE, _WORKED, _LAST, _HELD = range(2, 8)


def static(least: int = 1, most: int = 1, period: float = 1.0, startup: float = 0.0) -> SizingRule:
    """Always `most` workers: the baseline for the others."""
    return sizing_rule("static", _static_step, (least, most), period, startup=startup)


def _static_step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    return parameters[MOST]


def hpa(
    least: int = 1,
    most: int = 1,
    period: float = 15.0,
    startup: float = 0.0,
    target: float = 0.8,
    window: float = 300.0,
    tolerance: float = 0.1,
) -> SizingRule:
    """The horizontal pod autoscaler of Kubernetes, by the algorithm in its documentation.

    `desired = ceil(now * measured / target)`, unchanged within `tolerance`; up to twice as many or four more per
    step; down only to the highest desired size of the last `window` seconds. `target` is the share of busy workers;
    the lower, the more spare ones. The original sees no queue. Here waiting jobs count as demand, or a full stage
    could never ask for more than 1/target of its size.
    """
    if not 0.0 < target <= 1.0:
        raise UsageError(f"hpa: target must be above 0 and at most 1, not {target}")
    return _stabilised_rule("hpa", _hpa_step, (least, most), period, startup, window, tolerance, target)


def _hpa_step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    now = max(sample[ON], 1.0)
    ratio = (sample[BUSY] + min(sample[QUEUE], now)) / now / parameters[OWN + 1]
    desired = now if abs(ratio - 1.0) <= parameters[OWN + 2] else float(math.ceil(now * ratio))
    return stabilised(memory, parameters, sample[ON], min(desired, max(2.0 * now, now + 4.0)))


def _stabilised_rule(
    name: str,
    step: SizingStep,
    limits: tuple[int, int],
    period: float,
    startup: float,
    window: float,
    tolerance: float,
    target: float,
) -> SizingRule:
    if not period > 0.0 or not 0.0 <= window <= 100_000 * period:
        raise UsageError(f"{name}: window must be 0 or more, and at most 100000 periods, not {window}")
    if not 0.0 <= tolerance <= 1.0:
        raise UsageError(f"{name}: tolerance must be between 0 and 1, not {tolerance}")
    samples = max(1, round(window / period))
    own = (samples, target, tolerance)
    return sizing_rule(name, step, limits, period, own, startup=startup, width=_RING + samples)


def stabilised(memory: MutableSequence[float], parameters: Sequence[float], now: float, desired: float) -> float:
    """The highest desired size of the window, if less than now. Memory: a count, and the last sizes in turn."""
    samples = int(parameters[OWN])
    memory[_RING + int(memory[_COUNT]) % samples] = desired
    memory[_COUNT] += 1.0
    highest = desired
    for place in range(_RING, _RING + samples):
        highest = max(highest, memory[place])
    return within(desired if desired >= now else min(now, highest), parameters)


def keda(
    least: int = 1,
    most: int = 1,
    period: float = 15.0,
    startup: float = 0.0,
    jobs: float = 1.0,
    window: float = 300.0,
    tolerance: float = 0.1,
) -> SizingRule:
    """KEDA's RabbitMQ scaler (mode QueueLength) under the horizontal pod autoscaler, by their documentation.

    `jobs` per worker: below 1 there are spare workers, above 1 there is always a queue. `window` and `tolerance`
    are those of the autoscaler, as for `hpa`.
    """
    if not jobs > 0.0:
        raise UsageError(f"keda: jobs must be above 0, not {jobs}")
    return _stabilised_rule("keda", _keda_step, (least, most), period, startup, window, tolerance, jobs)


def _keda_step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    now = max(sample[ON], 1.0)
    desired = (sample[QUEUE] + sample[BUSY]) / parameters[OWN + 1]
    if abs(desired / now - 1.0) <= parameters[OWN + 2]:
        desired = now
    limited = min(float(math.ceil(desired)), max(2.0 * now, now + 4.0))
    return stabilised(memory, parameters, sample[ON], limited)


def ds2(
    least: int = 1,
    most: int = 1,
    period: float = 1.0,
    startup: float = 0.0,
    window: float = 10.0,
    spare: float = 1.1,
) -> SizingRule:
    """DS2 (Kalavri et al., "Three steps is all you need", OSDI 2018).

    The true rate of a worker is the jobs done per second of work, without waiting; a stage needs the arrival rate
    divided by that. This is right in one step for a constant load, but ignores a backlog, so `spare` must make up
    for it: the share of workers on top. `window` is how long rates are measured before each decision.
    """
    if not window >= period or not spare > 0.0:
        raise UsageError(f"ds2: window must be at least the period, spare above 0, not {window} and {spare}")
    return sizing_rule("ds2", _ds2_step, (least, most), period, (window, spare), startup=startup, width=8)


def _ds2_step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    """Memory: the start of the window, the counts at that time, and the work since."""
    now = sample[NOW]
    memory[_WORKED] += sample[BUSY] * (now - memory[_LAST])
    memory[_LAST] = now
    elapsed = now - memory[_BEGAN] - (sample[HELD] - memory[_HELD])
    if elapsed < parameters[OWN] - 1e-9 or memory[_WORKED] <= 0.0:
        return within(max(sample[ON], 1.0), parameters)
    done = sample[DONE] - memory[_DONE]
    load = (sample[ARRIVED] - memory[_ARRIVED]) / elapsed * memory[_WORKED] / max(done, 1.0)
    memory[_BEGAN], memory[_ARRIVED], memory[_DONE], memory[_WORKED] = now, sample[ARRIVED], sample[DONE], 0.0
    memory[_HELD] = sample[HELD]
    return within(float(math.ceil(load * parameters[OWN + 1])), parameters)
