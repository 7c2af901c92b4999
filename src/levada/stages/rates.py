"""How fast do jobs arrive, and how long does one take? Estimated from counts, while both may drift or jump.

Arrivals: a slow moving average that a two-sided CUSUM test replaces by a fast one as soon as they part. Service:
the work of the last few hundred jobs divided by their number (Little's law), whatever the distribution.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

from levada.stages.rule import SERVICE
from levada.stages.sample import ARRIVED, BUSY, DONE, HELD, NOW

__all__ = ["RATES", "estimate_arrivals", "estimate_service"]

_LAST, _ARRIVED, _HELD, _SLOW, _FAST, _UP, _DOWN, _DONE, _WORK, RATES = range(2, 12)
_SLOW_SECONDS, _FAST_SECONDS = 20.0, 1.0
_ALLOWED, _ALARM = 0.5, 5.0  # standard deviations: what CUSUM overlooks, and what it calls a change
_JOBS = 300.0  # that an estimate of the service time remembers
_ENOUGH = 5.0


def estimate_arrivals(memory: MutableSequence[float], sample: Sequence[float]) -> float:
    """Jobs per second that the source would send if it were not held back. Call it before `estimate_service`."""
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
    """Seconds per job; 0 as long as too few are done."""
    done = sample[DONE] - memory[_DONE]
    if memory[SERVICE] <= 0.0:  # from the beginning, while there is little
        memory[_WORK] += sample[BUSY] * (sample[NOW] - memory[_LAST])
        if done >= _ENOUGH:
            memory[SERVICE] = memory[_WORK] / done
            memory[_DONE], memory[_WORK] = sample[DONE], 0.0
    elif done > 0.0:
        memory[_WORK] += sample[BUSY] * (sample[NOW] - memory[_LAST])
        memory[SERVICE] += (memory[_WORK] / done - memory[SERVICE]) * min(1.0, done / _JOBS)
        memory[_DONE], memory[_WORK] = sample[DONE], 0.0
    else:
        memory[_WORK] += sample[BUSY] * (sample[NOW] - memory[_LAST])
    memory[_LAST] = sample[NOW]
    return memory[SERVICE]
