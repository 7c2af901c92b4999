"""Feed-forward rule: as many workers as the stage will have jobs when a new worker could be ready.

A stage that always has a free worker has `rate * service` jobs on average, and its current jobs end within a
service time. So the jobs after a lead (a start-up and a period) follow from the current ones and from the
arrivals: at the first stage the measured rate, at the others what the stage before can release. That number, plus
a share of its standard deviation, is the number of workers.

Both rates are estimated from counts alone. Arrivals: a slow moving average, which a two-sided CUSUM test replaces
by a fast one as soon as they differ. Service: the work of the last few hundred jobs divided by their number
(Little's law), for any distribution.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

from levada.core.errors import UsageError
from levada.stages.rule import OWN, PERIOD, RATE, SERVICE, STARTUP, SizingRule, sizing_rule, within
from levada.stages.sample import (
    ARRIVED,
    BEFORE_BUSY,
    BEFORE_DONE,
    BEFORE_ON,
    BEFORE_QUEUE,
    BEFORE_RATE,
    BEFORE_SERVICE,
    BUSY,
    DONE,
    HELD,
    NOW,
    ON,
    QUEUE,
)

_LAST, _ARRIVED, _HELD, _SLOW, _FAST, _UP, _DOWN, _DONE, _WORK, RATES = range(2, 12)
_SLOW_SECONDS, _FAST_SECONDS = 20.0, 1.0
_ALLOWED, _ALARM = 0.5, 5.0  # standard deviations: what CUSUM ignores, and what it calls a change
_JOBS = 300.0  # that the estimate of the service time remembers
_ENOUGH = 5.0  # jobs for a first estimate
_OVER, _UNDER, _RAISED, _WIDTH = range(RATES, RATES + 4)
_SOONER = 0.88  # of the gate when shrinking: an idle worker costs for sure, a queue may drain by itself
_FEW = 50.0  # jobs: with fewer, the number of jobs per job of the stage before is unknown


def estimate_arrivals(memory: MutableSequence[float], sample: Sequence[float]) -> float:
    """Jobs per second that the source would send if it were not held. Call it before `estimate_service`."""
    elapsed = sample[NOW] - memory[_LAST] - (sample[HELD] - memory[_HELD])
    came = sample[ARRIVED] - memory[_ARRIVED]
    memory[_HELD] = sample[HELD]
    memory[_ARRIVED] = sample[ARRIVED]
    if elapsed <= 1e-9:
        return memory[_SLOW]
    rate = came / elapsed
    memory[_FAST] += (rate - memory[_FAST]) * (1.0 - math.exp(-elapsed / _FAST_SECONDS))
    surprise = (came - memory[_SLOW] * elapsed) / math.sqrt(max(memory[_SLOW] * elapsed, 1.0))
    memory[_SLOW] += (rate - memory[_SLOW]) * (1.0 - math.exp(-elapsed / _SLOW_SECONDS))
    memory[_UP] = max(0.0, memory[_UP] + surprise - _ALLOWED)
    memory[_DOWN] = max(0.0, memory[_DOWN] - surprise - _ALLOWED)
    if max(memory[_UP], memory[_DOWN]) > _ALARM:
        memory[_SLOW] = max(rate, memory[_FAST]) if memory[_UP] > _ALARM else memory[_FAST]
        memory[_FAST] = memory[_SLOW]
        memory[_UP] = memory[_DOWN] = 0.0
    return memory[_SLOW]


def estimate_service(memory: MutableSequence[float], sample: Sequence[float]) -> float:
    """Seconds per job; 0 until enough are done."""
    done = sample[DONE] - memory[_DONE]
    memory[_WORK] += sample[BUSY] * (sample[NOW] - memory[_LAST])
    memory[_LAST] = sample[NOW]
    if memory[SERVICE] <= 0.0:  # from the beginning, until there are enough
        if done >= _ENOUGH:
            memory[SERVICE] = memory[_WORK] / done
            memory[_DONE], memory[_WORK] = sample[DONE], 0.0
    elif done > 0.0:
        memory[SERVICE] += (memory[_WORK] / done - memory[SERVICE]) * min(1.0, done / _JOBS)
        memory[_DONE], memory[_WORK] = sample[DONE], 0.0
    return memory[SERVICE]


def feed_forward(
    least: int = 1,
    most: int = 1,
    period: float = 0.25,
    startup: float = 0.0,
    spare: float = 0.63,
    gate: float = 1.63,
    patience: float = 10.0,
    cooldown: float = 0.0,
    drain: float = 0.7,
) -> SizingRule:
    """Follows the load with few spare workers, without given rates or service times.

    `spare` is the number of standard deviations of the coming jobs to keep free: more costs workers, less costs
    latency. `gate` is the number of standard deviations by which the size must be off before it changes: more saves
    decisions, and costs both. A smaller difference counts once it has lasted for `patience` seconds (ten times as
    long for a tenth of the gate). `drain` is the time within which a queue should be empty. For `cooldown` seconds
    after a growth, the stage does not shrink.
    """
    if not (0.0 <= spare <= 100.0 and all(0.0 <= each <= 1e6 for each in (gate, patience, cooldown, drain))):
        raise UsageError("feed-forward: spare, gate, patience, cooldown and drain must be 0 or more")
    own = (spare, gate, patience, cooldown, drain)
    return sizing_rule("feed-forward", _step, (least, most), period, own, startup=startup, width=_WIDTH)


def _step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    """Memory: the estimates of both rates, worker-seconds too many and too few, and the time of the last growth."""
    arrivals = estimate_arrivals(memory, sample)
    service = estimate_service(memory, sample)
    lead = parameters[STARTUP] + parameters[PERIOD]
    rate = memory[RATE] = arrivals
    if sample[BEFORE_SERVICE] > 0.0:
        memory[RATE] = sample[BEFORE_RATE] * _jobs_per_job(sample)
        rate = _inflow(sample, memory[RATE], lead)
    kept = math.exp(-lead / service) if service > 0.0 else 1.0
    deviation = math.sqrt(rate * service * (1.0 - kept * kept) if service > 0.0 else rate * lead)
    wanted = _after(sample, rate, service, lead, kept) + parameters[OWN] * (1.0 - kept) * deviation
    wanted += _draining(sample[QUEUE], service, parameters[OWN + 4])
    return _switched(memory, parameters, sample, wanted, parameters[OWN + 1] * deviation)


def _switched(
    memory: MutableSequence[float],
    parameters: Sequence[float],
    sample: Sequence[float],
    wanted: float,
    gate: float,
) -> float:
    """The wanted size, once it is far off or has been off for long; until then the current size.

    The jobs of a stage are a random walk around the number of its workers. Of all ways to follow a random walk with
    a given number of corrections, a gate that it must not leave stays nearest.
    """
    off, patience = sample[ON] - wanted, parameters[OWN + 2]
    memory[_OVER] = max(0.0, memory[_OVER] + off * parameters[PERIOD])
    memory[_UNDER] = max(0.0, memory[_UNDER] - off * parameters[PERIOD])
    grow = off < -gate or memory[_UNDER] > patience * gate
    shrink = off > _SOONER * gate or memory[_OVER] > patience * gate
    if not grow and (not shrink or sample[NOW] - memory[_RAISED] < parameters[OWN + 3]):
        return within(sample[ON], parameters)
    memory[_OVER] = memory[_UNDER] = 0.0
    if grow:
        memory[_RAISED] = sample[NOW]
    return within(float(round(wanted)), parameters)


def _jobs_per_job(sample: Sequence[float]) -> float:
    """How many jobs arrive here per job done at the stage before."""
    return sample[ARRIVED] / sample[BEFORE_DONE] if sample[BEFORE_DONE] >= _FEW else 1.0


def _inflow(sample: Sequence[float], lasting: float, lead: float) -> float:
    """Jobs per second during the lead: at first the current jobs of the stage before, later its arrivals."""
    service = sample[BEFORE_SERVICE]
    in_hand = min(sample[BEFORE_ON], sample[BEFORE_BUSY] + sample[BEFORE_QUEUE]) / service * _jobs_per_job(sample)
    share = (1.0 - math.exp(-lead / service)) * service / lead
    return share * in_hand + (1.0 - share) * lasting


def _after(sample: Sequence[float], rate: float, service: float, lead: float, kept: float) -> float:
    """Jobs in work after the lead if none has to wait; `kept` is the share of the current ones still in work."""
    if service <= 0.0:
        return sample[BUSY] + rate * lead
    return rate * service + (sample[BUSY] - rate * service) * kept


def _draining(queue: float, service: float, drain: float) -> float:
    """Extra workers that drain the queue in time: one for each job, or fewer that do several."""
    return queue * min(1.0, service / drain) if service > 0.0 and drain > 0.0 else queue
