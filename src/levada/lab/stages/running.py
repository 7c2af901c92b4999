"""How does a system fare under a controller? The controller's own arithmetic, compiled, on simulated queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from levada.compiling import compiled
from levada.errors import UsageError
from levada.lab.stages.advance import advance, arm_pickup, arm_source
from levada.lab.stages.figures import Figures, figures_of
from levada.lab.stages.machine import Floats, Machine, build_machine
from levada.lab.stages.model import Model
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
    CRASH_AT,
    CRASHES,
    HELD,
    HELD_SECONDS,
    L_AT,
    LOAD_AT,
    R_STARTUP,
    T_DECISIONS,
    T_SWITCHED,
)
from levada.lab.stages.workforce import count_time, set_workers
from levada.stages.pressure import must_hold
from levada.stages.rule import RATE, SERVICE, SizingRule
from levada.stages.sample import FIELDS

__all__ = ["Course", "follow", "simulate"]

_LOOKS = 2_000  # of a run that is drawn


class Course(msgspec.Struct, frozen=True):
    """A run as it went: at each look, per stage, the queue, workers on, and workers paid."""

    figures: Figures
    at: Any
    queue: Any
    on: Any
    paid: Any


def simulate(model: Model, rules: tuple[SizingRule, ...]) -> Figures:
    """One rule per stage, all of one kind and with one period."""
    return _simulate(model, rules, 0).figures


def follow(model: Model, rules: tuple[SizingRule, ...]) -> Course:
    return _simulate(model, rules, _LOOKS)


def _simulate(model: Model, rules: tuple[SizingRule, ...], looks: int) -> Course:
    if len(rules) != len(model.stages) or len({(rule.step, rule.period) for rule in rules}) != 1:
        raise UsageError("each stage needs a rule, all of one kind and with one period")
    machine = build_machine(model, rules)
    samples = int(model.seconds / rules[0].period)
    every = max(1, samples // looks) if looks else samples + 1
    course = np.zeros((samples // every + 1, len(rules), 3))
    parameters = np.zeros((len(rules), max(len(rule.parameters) for rule in rules)))
    for place, rule in enumerate(rules):
        parameters[place, : len(rule.parameters)] = rule.parameters
    memory = np.zeros((len(rules), max(rule.width for rule in rules)))
    first = np.array([stage.first for stage in model.stages])
    run: Callable[..., int] = compiled(_run, step=rules[0].step)
    how = (model.seconds, rules[0].period, model.seed, model.idle_first, model.hold)
    seen = run(machine, memory, parameters, first, *how, course, every)
    at = rules[0].period * every * np.arange(seen)
    figures = figures_of(machine, model.seconds)
    return Course(figures, at, course[:seen, :, 0], course[:seen, :, 1], course[:seen, :, 2])


def step(memory: Any, parameters: Any, sample: Any) -> float:
    """Stands here for the rule's own, which is put in its place."""
    raise NotImplementedError


def _run(
    m: Machine,
    memory: Floats,
    parameters: Floats,
    first: Any,
    seconds: float,
    period: float,
    seed: int,
    idle_first: bool,
    hold: bool,
    course: Floats,
    every: int,
) -> int:
    """At each sample every stage is looked at in turn, so that a stage knows what the one before was just told."""
    _begin(m, first, seed)
    stages = len(m.counts)
    samples = np.zeros((stages, FIELDS))
    queues_before = np.zeros(stages)
    number = 0
    while number * period <= seconds:
        now = number * period
        advance(m, now)
        if m.clocks[HELD] > 0.0:
            m.clocks[HELD_SECONDS] += period
        if number % every == 0:
            for stage in range(stages):
                _look(m, stage, course[number // every, stage])
        for stage in range(stages):
            _sample(m, stage, now, samples, memory)
            wanted = int(step(memory[stage], parameters[stage], samples[stage]))
            if wanted != m.counts[stage, C_ON]:
                m.totals[T_DECISIONS] += 1
                m.totals[T_SWITCHED] += set_workers(m, stage, wanted, idle_first, now)
                arm_pickup(m, stage, now)
        if hold:
            held = must_hold(m.clocks[HELD] > 0.0, samples, queues_before)
            if held != (m.clocks[HELD] > 0.0):
                m.clocks[HELD] = 1.0 if held else 0.0
                arm_source(m, now)
            for stage in range(stages):
                queues_before[stage] = samples[stage, 1]
        number += 1
    advance(m, seconds)
    for stage in range(stages):
        count_time(m, stage, seconds)
    return (number - 1) // every + 1


def _begin(m: Machine, first: Any, seed: int) -> None:
    np.random.seed(seed)
    m.clocks[LOAD_AT] = m.load[L_AT, 0]
    if m.clocks[CRASHES] > 0.0:
        m.clocks[CRASH_AT] = np.random.exponential(1.0 / m.clocks[CRASHES])
    for stage in range(len(m.counts)):
        startup = m.rates[stage, R_STARTUP]
        m.rates[stage, R_STARTUP] = 0.0  # who is there at the beginning is up
        set_workers(m, stage, first[stage], True, 0.0)
        m.rates[stage, R_STARTUP] = startup


def _look(m: Machine, stage: int, row: Floats) -> None:
    counts = m.counts[stage]
    row[0] = counts[C_TAIL] - counts[C_HEAD]
    row[1] = counts[C_ON]
    row[2] = counts[C_ON] + counts[C_BUSY] - counts[C_BUSY_ON]


def _sample(m: Machine, stage: int, now: float, samples: Floats, memory: Floats) -> None:
    """In the order of `levada.stages.sample`."""
    counts, row = m.counts[stage], samples[stage]
    row[0] = now
    row[1] = counts[C_TAIL] - counts[C_HEAD]
    row[2], row[3], row[4] = counts[C_ON], counts[C_BUSY], counts[C_STARTING]
    row[5], row[6] = counts[C_ARRIVED], counts[C_DONE]
    row[7], row[8] = m.clocks[HELD_SECONDS], m.counts[stage, C_CAPACITY]
    if stage > 0:
        before = m.counts[stage - 1]
        row[9], row[10] = before[C_ON], before[C_TAIL] - before[C_HEAD]
        row[11], row[12] = before[C_BUSY], before[C_DONE]
        row[13], row[14] = memory[stage - 1, SERVICE], memory[stage - 1, RATE]
