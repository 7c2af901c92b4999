"""Runs of the simulator under a controller."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from levada.core.compile_cache import compiled, uncollected
from levada.core.errors import UsageError
from levada.lab.stages.figures import StageFigures, figures_of
from levada.lab.stages.machine import (
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
    Floats,
    Integers,
    advance,
    arm_pickup,
    arm_source,
    build_machine,
    exponential,
    set_workers,
)
from levada.lab.stages.model import Model
from levada.stages.chain import cut_to_budget, must_hold
from levada.stages.rule import LEAST, RATE, SERVICE, SizingRule
from levada.stages.sample import BEFORE_ON, FIELDS, QUEUE


def step(memory: Any, parameters: Any, sample: Any) -> float:
    """Placeholder for the rule's own step, which replaces it when compiled."""
    raise NotImplementedError


def run_samples(
    f: Floats, n: Integers, memory: Floats, parameters: Floats, samples: Floats, how: Floats, course: Floats
) -> int:
    """Decide for the stages in order, for each rule sees the decision before it; returns the snapshots taken.

    `f` and `n` are a machine's floats and integers. `samples` has room for a sample of each stage, and after it the
    wanted workers (initially the first ones) and the queue before. `how` is the period, whether idle workers go
    first and whether the source may be held, the budget, and how many samples there are between two snapshots in
    `course`.
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
                _snapshot(n, stage, course[number // every, stage])
            if stage > 0:
                samples[stage, BEFORE_ON] = wanted[stage - 1]
            wanted[stage] = step(memory[stage], parameters[stage], samples[stage])
        cut_to_budget(wanted, parameters[:, LEAST], budget)
        for stage in range(stages):
            _execute(f, n, stage, int(wanted[stage]), idle_first, now)
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
        f[place] = 0.0  # the first workers need no start
        set_workers(f, n, stage, int(first[stage]), idle_first, 0.0)
        f[place] = startup


def _snapshot(n: Integers, stage: int, row: Floats) -> None:
    b = TOTALS + stage * n[N_INTEGERS]
    row[0] = n[b + C_TAIL] - n[b + C_HEAD]
    row[1] = n[b + C_ON]
    row[2] = n[b + C_ON] + n[b + C_BUSY] - n[b + C_BUSY_ON]


def _sample(f: Floats, n: Integers, stage: int, now: float, samples: Floats, memory: Floats) -> None:
    """Fill a sample, in the order of `levada.stages.sample`."""
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


def _execute(f: Floats, n: Integers, stage: int, wanted: int, idle_first: bool, now: float) -> None:
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


_SNAPSHOTS = 2_000  # of a run that is drawn


class Course(msgspec.Struct, frozen=True):
    """A run over time: at each snapshot, per stage, the queue, workers on, and workers paid."""

    figures: StageFigures
    at: Any
    queue: Any
    on: Any
    paid: Any


def simulate(model: Model, rules: tuple[SizingRule, ...]) -> StageFigures:
    """Run the model; one rule per stage, all of one kind and with one period."""
    return _simulate(model, rules, 0).figures


def follow(model: Model, rules: tuple[SizingRule, ...]) -> Course:
    """Run the model, and keep snapshots of it."""
    return _simulate(model, rules, _SNAPSHOTS)


def _simulate(model: Model, rules: tuple[SizingRule, ...], snapshots: int) -> Course:
    if len(rules) != len(model.stages) or len({(rule.step, rule.period) for rule in rules}) != 1:
        raise UsageError("each stage needs a rule, all of one kind and with one period")
    machine, period = build_machine(model, rules), rules[0].period
    samples = int(model.seconds / period)
    every = max(1, samples // snapshots) if snapshots else samples + 1
    course = np.zeros((samples // every + 1, len(rules), 3))
    parameters = np.zeros((len(rules), max(len(rule.parameters) for rule in rules)))
    for place, rule in enumerate(rules):
        parameters[place, : len(rule.parameters)] = rule.parameters
    memory = np.zeros((len(rules), max(rule.width for rule in rules)))
    samples_room = np.zeros((len(rules), FIELDS + 2))
    samples_room[:, FIELDS] = [stage.first for stage in model.stages]
    budget = math.inf if model.budget is None else float(model.budget)
    run: Callable[..., int] = compiled(run_samples, allocates=False, step=rules[0].step)
    how = np.array([period, model.idle_first, model.hold, budget, every])
    with uncollected():
        seen = run(machine.floats, machine.integers, memory, parameters, samples_room, how, course)
    at = period * every * np.arange(seen)
    figures = figures_of(machine, model.seconds)
    return Course(figures, at, course[:seen, :, 0], course[:seen, :, 1], course[:seen, :, 2])
