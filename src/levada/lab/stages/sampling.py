"""What does the controller see at each sample, and what becomes of its wishes?"""

from __future__ import annotations

from typing import Any

from levada.lab.stages.advance import advance, arm_pickup, arm_source
from levada.lab.stages.chance import exponential
from levada.lab.stages.machine import Floats, Integers
from levada.lab.stages.places import (
    C_ARRIVED,
    C_BUSY,
    C_BUSY_ON,
    C_CAPACITY,
    C_DONE,
    C_HEAD,
    C_ON,
    C_STARTING,
    C_TAIL,
    CLOCKS,
    CRASH_AT,
    CRASHES,
    END,
    HELD,
    HELD_SECONDS,
    LOAD_AT,
    N_FLOATS,
    N_INTEGERS,
    N_LOAD,
    N_STAGES,
    R_STARTUP,
    T_DECISIONS,
    T_SWITCHED,
    TOTALS,
)
from levada.lab.stages.workforce import set_workers
from levada.stages.budget import cut_to_budget
from levada.stages.pressure import must_hold
from levada.stages.rule import LEAST, RATE, SERVICE
from levada.stages.sample import BEFORE_ON, FIELDS, QUEUE

__all__ = ["run_samples"]


def step(memory: Any, parameters: Any, sample: Any) -> float:
    """Stands here for the rule's own, which is put in its place."""
    raise NotImplementedError


def run_samples(
    f: Floats, n: Integers, memory: Floats, parameters: Floats, samples: Floats, how: Floats, course: Floats
) -> int:
    """Stages are asked in turn, for each knows what the one before was just told; says how many looks were kept.

    `f` and `n` are a machine's floats and integers; `samples` has room for a sample of each stage, and after it the
    workers wanted (at first those at the beginning) and the queue before; `how` is the period, whether idle
    workers go first and the source may be held, the budget, and every how many samples a look is kept in `course`.
    """
    period, idle_first, hold, budget, every = how[0], how[1] > 0.0, how[2] > 0.0, how[3], int(how[4])
    stages, wanted, queues_before = n[N_STAGES], samples[:, FIELDS], samples[:, FIELDS + 1]
    _begin(f, n, wanted, idle_first)
    number = 0
    while number * period <= f[END]:
        now = number * period
        advance(f, n, now)
        if f[HELD] > 0.0:
            f[HELD_SECONDS] += period
        for stage in range(stages):
            _sample(f, n, stage, now, samples, memory)
            if number % every == 0:
                _look(n, stage, course[number // every, stage])
            if stage > 0:
                samples[stage, BEFORE_ON] = wanted[stage - 1]
            wanted[stage] = step(memory[stage], parameters[stage], samples[stage])
        cut_to_budget(wanted, parameters[:, LEAST], budget)
        for stage in range(stages):
            _obey(f, n, stage, int(wanted[stage]), idle_first, now)
        if hold:
            _hold(f, n, samples, queues_before, now)
        number += 1
    advance(f, n, f[END])
    return (number - 1) // every + 1


def _begin(f: Floats, n: Integers, first: Floats, idle_first: bool) -> None:
    f[LOAD_AT] = f[n[N_LOAD]]
    if f[CRASHES] > 0.0:
        f[CRASH_AT] = exponential(n, 1.0 / f[CRASHES])
    for stage in range(n[N_STAGES]):
        place = CLOCKS + stage * n[N_FLOATS] + R_STARTUP
        startup = f[place]
        f[place] = 0.0  # who is there at the beginning is up
        set_workers(f, n, stage, int(first[stage]), idle_first, 0.0)
        f[place] = startup


def _look(n: Integers, stage: int, row: Floats) -> None:
    b = TOTALS + stage * n[N_INTEGERS]
    row[0] = n[b + C_TAIL] - n[b + C_HEAD]
    row[1] = n[b + C_ON]
    row[2] = n[b + C_ON] + n[b + C_BUSY] - n[b + C_BUSY_ON]


def _sample(f: Floats, n: Integers, stage: int, now: float, samples: Floats, memory: Floats) -> None:
    """In the order of `levada.stages.sample`."""
    row, b = samples[stage], TOTALS + stage * n[N_INTEGERS]
    row[0] = now
    row[1] = n[b + C_TAIL] - n[b + C_HEAD]
    row[2], row[3], row[4] = n[b + C_ON], n[b + C_BUSY], n[b + C_STARTING]
    row[5], row[6] = n[b + C_ARRIVED], n[b + C_DONE]
    row[7], row[8] = f[HELD_SECONDS], n[b + C_CAPACITY]
    if stage > 0:
        before = b - n[N_INTEGERS]
        row[10] = n[before + C_TAIL] - n[before + C_HEAD]
        row[11], row[12] = n[before + C_BUSY], n[before + C_DONE]
        row[13], row[14] = memory[stage - 1, SERVICE], memory[stage - 1, RATE]


def _obey(f: Floats, n: Integers, stage: int, wanted: int, idle_first: bool, now: float) -> None:
    if wanted != n[TOTALS + stage * n[N_INTEGERS] + C_ON]:
        n[T_DECISIONS] += 1
        n[T_SWITCHED] += set_workers(f, n, stage, wanted, idle_first, now)
        arm_pickup(f, n, stage, now)


def _hold(f: Floats, n: Integers, samples: Floats, queues_before: Floats, now: float) -> None:
    held = must_hold(f[HELD] > 0.0, samples, queues_before)
    if held != (f[HELD] > 0.0):
        f[HELD] = 1.0 if held else 0.0
        arm_source(f, n, now)
    for stage in range(len(queues_before)):
        queues_before[stage] = samples[stage, QUEUE]
