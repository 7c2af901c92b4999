"""Ours: the jobs that a stage will hold by the time a new worker could start, and a little more.

A stage that always has a free worker holds on average `rate * service` jobs, and forgets what it holds now within
a service time. So the jobs it will hold after a lead (a start-up and a period) are known from what it holds now and
from what comes in: at the first stage the measured rate of arrivals, at the others what the stage before can
release. That number, plus a share of its standard deviation, is the number of workers. Both rates are estimated
from counts alone.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

from levada.errors import UsageError
from levada.stages.rates import RATES, estimate_arrivals, estimate_service
from levada.stages.rule import OWN, PERIOD, RATE, STARTUP, SizingRule, sizing_rule, within
from levada.stages.sample import (
    ARRIVED,
    BEFORE_BUSY,
    BEFORE_DONE,
    BEFORE_ON,
    BEFORE_QUEUE,
    BEFORE_RATE,
    BEFORE_SERVICE,
    BUSY,
    NOW,
    ON,
    QUEUE,
)

__all__ = ["feed_forward"]

_OVER, _UNDER, _RAISED, _WIDTH = range(RATES, RATES + 4)
_SOONER = 0.88  # of the gate at which workers go: an idle worker is paid for sure, a queue may drain by itself
_FEW = 50.0  # jobs: with fewer nobody knows how many come out of one


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
    """Follows the load with few spare workers and without being told rates or service times.

    `spare` is how many standard deviations of the jobs to come are kept free, as far as a stage forgets within the
    lead: more costs workers, less costs latency. `gate` is how many standard deviations the wish must be off before
    anybody is switched: more saves decisions, and costs both; what is less off counts once it has lasted for
    `patience` seconds (ten times as long if it is a tenth of the gate). `drain` is the time within which a queue is
    to be emptied. `cooldown` is for how many seconds after a growth nobody is switched off.
    """
    if not (0.0 <= spare <= 100.0 and all(0.0 <= each <= 1e6 for each in (gate, patience, cooldown, drain))):
        raise UsageError("feed-forward: spare, gate, patience, cooldown and drain must be 0 or more")
    own = (spare, gate, patience, cooldown, drain)
    return sizing_rule("feed-forward", _step, (least, most), period, own, startup=startup, width=_WIDTH)


def _step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    """Memory: the estimates of both rates, worker-seconds too many and too few, and when the stage last grew."""
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
    """The wish, once it is far off or has been off for long; until then what there is.

    What a stage holds walks at random around the number of its workers. Of all ways to follow a random walk with so
    many corrections, a gate that it must not leave keeps it nearest.
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
    """How many jobs come here for one that is done before."""
    return sample[ARRIVED] / sample[BEFORE_DONE] if sample[BEFORE_DONE] >= _FEW else 1.0


def _inflow(sample: Sequence[float], lasting: float, lead: float) -> float:
    """Jobs per second during the lead: at first what the workers before have in hand, later what comes to them."""
    service = sample[BEFORE_SERVICE]
    in_hand = min(sample[BEFORE_ON], sample[BEFORE_BUSY] + sample[BEFORE_QUEUE]) / service * _jobs_per_job(sample)
    share = (1.0 - math.exp(-lead / service)) * service / lead
    return share * in_hand + (1.0 - share) * lasting


def _after(sample: Sequence[float], rate: float, service: float, lead: float, kept: float) -> float:
    """Jobs in work after the lead if none has to wait; of those now in work the share `kept` is there still."""
    if service <= 0.0:
        return sample[BUSY] + rate * lead
    return rate * service + (sample[BUSY] - rate * service) * kept


def _draining(queue: float, service: float, drain: float) -> float:
    """Workers on top that empty the queue in time: one for each job, or fewer that do several."""
    return queue * min(1.0, service / drain) if service > 0.0 and drain > 0.0 else queue
