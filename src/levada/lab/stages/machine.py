"""What is the state of a simulated system? Two arrays, so that the compiled loop can stop and go on.

A worker is on or not, busy or not, and starting or not; one that is off and busy finishes its job.
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
    CLOCKS,
    COUNTS,
    CRASHES,
    END,
    HELD,
    HELD_SECONDS,
    INTERVAL,
    N_FLOATS,
    N_INTEGERS,
    N_LATENCIES,
    N_LATENCY,
    N_STAGES,
    NOW,
    R_ENTRY,
    R_PICKUP_AT,
    R_POLL,
    R_SERVICE,
    R_SPREAD,
    R_STARTUP,
    RATES,
    S_PLACE,
    SCANNERS,
    SLOW_FACTOR,
    SLOW_FROM,
    STAFF,
    T_CHANCE,
    TOTALS,
)
from levada.stages.rule import SizingRule

__all__ = ["Floats", "Integers", "Machine", "build_machine"]

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


class Machine(NamedTuple):
    """What stands where is said in `levada.lab.stages.places`."""

    floats: Floats
    integers: Integers

    @property
    def rates(self) -> Floats:
        """One row per stage."""
        stages, width = self.integers[N_STAGES], self.integers[N_FLOATS]
        return self.floats[CLOCKS : CLOCKS + stages * width].reshape(stages, width)[:, :RATES]

    @property
    def counts(self) -> Integers:
        """One row per stage."""
        stages, width = self.integers[N_STAGES], self.integers[N_INTEGERS]
        return self.integers[TOTALS : TOTALS + stages * width].reshape(stages, width)[:, :COUNTS]

    @property
    def latencies(self) -> Floats:
        """There is room for so many."""
        first = self.integers[N_LATENCY]
        return self.floats[first : first + self.integers[N_LATENCIES]]


def build_machine(model: Model, rules: tuple[SizingRule, ...]) -> Machine:
    """The heap's times lie in the floats before the load, its events at the end of the integers."""
    stages = len(model.stages)
    workers = max(1, *(max(rule.most, stage.first) for rule, stage in zip(rules, model.stages, strict=True)))
    room = 1 << (max(stage.capacity for stage in model.stages) + workers + 2).bit_length()
    heap = 4 * stages * workers + 64
    floats, integers = RATES + 2 * room + workers, COUNTS + STAFF * workers
    load = np.array([*model.load.pieces(model.seconds), (np.inf, 0.0)])
    recorded = np.array([time for stage in model.stages for time in stage.recorded])
    latencies = int(model.jobs + 6 * model.jobs**0.5) + 100
    sizes = np.cumsum([CLOCKS, stages * floats, heap, load.size, recorded.size, latencies])
    machine = Machine(np.zeros(sizes[-1]), np.zeros(TOTALS + stages * integers + heap, np.int64))
    machine.integers[T_CHANCE] = model.seed
    machine.integers[N_STAGES:TOTALS] = (
        *(stages, workers, room, floats, integers, sizes[1]),
        *(TOTALS + stages * integers, sizes[2], sizes[3], sizes[4], latencies, 0),
    )
    machine.floats[sizes[1] : sizes[2]] = np.inf
    machine.floats[sizes[2] : sizes[4]] = np.concatenate((load.ravel(), recorded))
    _set_clocks(machine.floats, model, stages * workers)
    _set_stages(machine, model, workers)
    return machine


def _set_clocks(clocks: Floats, model: Model, workers: int) -> None:
    clocks[:CLOCKS] = np.inf
    clocks[[NOW, SCANNERS, HELD_SECONDS, HELD]] = 0.0
    clocks[[INTERVAL, SLOW_FROM, SLOW_FACTOR]] = model.interval, model.slow_from, model.slow_factor
    clocks[[CRASHES, END]] = model.crashes * workers, model.seconds


def _set_stages(machine: Machine, model: Model, workers: int) -> None:
    rows, counts, recorded = machine.rates, machine.counts, 0
    for place, stage in enumerate(model.stages):
        rows[place, [R_SERVICE, R_SPREAD, R_ENTRY]] = mean_time(stage), stage.spread, stage.entry
        rows[place, [R_POLL, R_STARTUP, R_PICKUP_AT]] = stage.poll, stage.startup, np.inf
        ends = recorded, recorded + len(stage.recorded)
        counts[place, [C_CAPACITY, C_KIND, C_FIRST, C_END]] = stage.capacity, TIMES.index(stage.times), *ends
        recorded = ends[1]
        first = TOTALS + place * machine.integers[N_INTEGERS] + COUNTS
        machine.integers[first : first + workers * STAFF].reshape(workers, STAFF)[:, S_PLACE] = -1
