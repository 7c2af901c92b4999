"""How does a system fare under a controller? The controller's own arithmetic, compiled, on simulated queues."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from levada.compiling import compiled, uncollected
from levada.errors import UsageError
from levada.lab.stages.figures import Figures, figures_of
from levada.lab.stages.machine import build_machine
from levada.lab.stages.model import Model
from levada.lab.stages.sampling import run_samples
from levada.stages.rule import SizingRule
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
    machine, period = build_machine(model, rules), rules[0].period
    samples = int(model.seconds / period)
    every = max(1, samples // looks) if looks else samples + 1
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
