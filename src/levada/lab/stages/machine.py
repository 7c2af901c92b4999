"""What is the state of a simulated system? Arrays, so that the compiled loop can stop and go on.

Rows are stages. A worker is on or not, busy or not, and starting or not; one that is off and busy finishes its job.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from levada.lab.stages.model import TIMES, Model, mean_time
from levada.lab.stages.places import (
    C_CAPACITY,
    C_END,
    C_FIRST,
    C_KIND,
    COUNTS,
    CRASHES,
    EVENTS,
    HELD,
    HELD_SECONDS,
    INTERVAL,
    NOW,
    R_ENTRY,
    R_ENTRY_AT,
    R_PICKUP_AT,
    R_POLL,
    R_SERVICE,
    R_SPREAD,
    R_STARTUP,
    RATES,
    RING,
    S_PLACE,
    SCANNERS,
    SLOW_FACTOR,
    SLOW_FROM,
    STAFF,
)
from levada.stages.rule import SizingRule

__all__ = ["Machine", "build_machine"]

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


class Machine(NamedTuple):
    """What stands where is said in `levada.lab.stages.places`. Few arrays, for each costs at every call."""

    clocks: Floats
    totals: Integers
    latency: Floats  # of each job that was completed, as far as there is room
    load: Floats
    recorded: Floats  # recorded times of all stages
    rates: Floats
    counts: Integers
    staff: Integers
    made: Floats  # when the worker's job was made
    ring: Floats
    due: Floats  # a heap of times
    events: Integers


def build_machine(model: Model, rules: tuple[SizingRule, ...]) -> Machine:
    stages = len(model.stages)
    workers = max(1, *(max(rule.most, stage.first) for rule, stage in zip(rules, model.stages, strict=True)))
    ring = 1 << (max(stage.capacity for stage in model.stages) + workers + 2).bit_length()
    heap = 4 * stages * workers + 64
    staff = np.zeros((STAFF, stages, workers), np.int64)
    staff[S_PLACE] = -1
    return Machine(
        clocks=_clocks(model, stages * workers),
        totals=np.zeros(8, np.int64),
        latency=np.zeros(int(model.jobs + 6 * model.jobs**0.5) + 100),
        load=np.array([*model.load.pieces(model.seconds), (np.inf, 0.0)]).T.copy(),
        recorded=np.array([time for stage in model.stages for time in stage.recorded] or [0.0]),
        rates=_rates(model),
        counts=_counts(model),
        staff=staff,
        made=np.zeros((stages, workers)),
        ring=np.zeros((RING, stages, ring)),
        due=np.zeros(heap),
        events=np.zeros((EVENTS, heap), np.int64),
    )


def _clocks(model: Model, workers: int) -> Floats:
    clocks = np.full(CRASHES + 1, np.inf)
    clocks[[NOW, SCANNERS, HELD_SECONDS, HELD]] = 0.0
    clocks[[INTERVAL, SLOW_FROM, SLOW_FACTOR]] = model.interval, model.slow_from, model.slow_factor
    clocks[CRASHES] = model.crashes * workers
    return clocks


def _rates(model: Model) -> Floats:
    rates = np.zeros((len(model.stages), RATES))
    for row, stage in zip(rates, model.stages, strict=True):
        row[R_SERVICE], row[R_SPREAD], row[R_ENTRY] = mean_time(stage), stage.spread, stage.entry
        row[R_POLL], row[R_STARTUP] = stage.poll, stage.startup
        row[R_ENTRY_AT] = row[R_PICKUP_AT] = np.inf
    return rates


def _counts(model: Model) -> Integers:
    counts = np.zeros((len(model.stages), COUNTS), np.int64)
    first = 0
    for row, stage in zip(counts, model.stages, strict=True):
        row[C_CAPACITY], row[C_KIND] = stage.capacity, TIMES.index(stage.times)
        row[C_FIRST], row[C_END] = first, first + len(stage.recorded)
        first += len(stage.recorded)
    return counts
