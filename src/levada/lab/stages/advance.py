"""What happens until then? One event after the other: jobs are made, taken in, picked up and done.

A poll of an empty queue changes nothing, so that polls are not events: while jobs are ready and workers idle, the
next pickup comes after an exponential time at the rate of all idle workers' polls together, which is the same.
"""

from __future__ import annotations

import numpy as np

from levada.lab.stages.machine import Machine
from levada.lab.stages.places import (
    C_ARRIVED,
    C_BUSY,
    C_BUSY_ON,
    C_CAPACITY,
    C_DONE,
    C_DROPPED,
    C_END,
    C_FIRST,
    C_HEAD,
    C_IDLE,
    C_KIND,
    C_LOOKS,
    C_LOOKS_SUM,
    C_MOST,
    C_READY,
    C_STARTING,
    C_TAIL,
    C_TAKEN,
    CRASH_AT,
    CRASHES,
    E_TURN,
    E_WHOSE,
    G_MADE,
    G_READY,
    HELD,
    INTERVAL,
    L_AT,
    L_BY,
    LOAD_AT,
    NOW,
    R_ENTRY,
    R_ENTRY_AT,
    R_LONGEST,
    R_PICKUP_AT,
    R_POLL,
    R_SERVICE,
    R_SPREAD,
    R_STARTUP,
    R_WAITED,
    S_BUSY,
    S_IDLE,
    S_ON,
    S_PLACE,
    S_STARTING,
    S_TURN,
    SCANNERS,
    SLOW_FACTOR,
    SLOW_FROM,
    SOURCE_AT,
    T_COMPLETED,
    T_CRASHED,
    T_HEAP,
    T_LOAD,
    T_MADE,
)
from levada.lab.stages.workforce import add_idle, count_time, pop_event, push_event, remove_idle, restart

__all__ = ["advance", "arm_pickup", "arm_source"]

_SOURCE, _LOAD, _CRASH, _WORKER, _ENTRY, _PICKUP = range(6)


def advance(m: Machine, until: float) -> None:
    stages = len(m.counts)
    while True:
        at, what, stage = m.clocks[SOURCE_AT], _SOURCE, 0
        if m.clocks[LOAD_AT] < at:
            at, what = m.clocks[LOAD_AT], _LOAD
        if m.clocks[CRASH_AT] < at:
            at, what = m.clocks[CRASH_AT], _CRASH
        if m.totals[T_HEAP] > 0 and m.due[0] < at:
            at, what = m.due[0], _WORKER
        for place in range(stages):
            if m.rates[place, R_ENTRY_AT] < at:
                at, what, stage = m.rates[place, R_ENTRY_AT], _ENTRY, place
            if m.rates[place, R_PICKUP_AT] < at:
                at, what, stage = m.rates[place, R_PICKUP_AT], _PICKUP, place
        if at > until:
            m.clocks[NOW] = until
            return
        m.clocks[NOW] = at
        if what == _PICKUP:
            _pick_up(m, stage, at)
        elif what == _ENTRY:
            _take_in(m, stage, at)
        elif what == _WORKER:
            _work(m, at)
        elif what == _SOURCE:
            m.totals[T_MADE] += 1
            arm_source(m, at)
            _offer(m, 0, at, at)
        elif what == _LOAD:
            _change_load(m, at)
        else:
            _crash(m, at)


def arm_source(m: Machine, now: float) -> None:
    scanners = m.clocks[SCANNERS]
    if scanners <= 1e-9 or m.clocks[HELD] > 0.0:
        m.clocks[SOURCE_AT] = np.inf
    else:
        m.clocks[SOURCE_AT] = now + np.random.exponential(m.clocks[INTERVAL] / scanners)


def _change_load(m: Machine, now: float) -> None:
    place = m.totals[T_LOAD]
    m.clocks[SCANNERS] += m.load[L_BY, place]
    m.totals[T_LOAD] = place + 1
    m.clocks[LOAD_AT] = m.load[L_AT, place + 1]
    arm_source(m, now)


def _offer(m: Machine, stage: int, made: float, now: float) -> None:
    counts = m.counts[stage]
    counts[C_ARRIVED] += 1
    length = counts[C_TAIL] - counts[C_HEAD]
    if length > m.counts[stage, C_CAPACITY]:  # one more may be on its way in
        counts[C_DROPPED] += 1
        return
    count_time(m, stage, now)
    m.ring[G_MADE, stage, counts[C_TAIL] & (m.ring.shape[2] - 1)] = made
    counts[C_TAIL] += 1
    counts[C_MOST] = max(counts[C_MOST], length + 1)
    counts[C_LOOKS] += 1
    counts[C_LOOKS_SUM] += length + 1
    if m.rates[stage, R_ENTRY_AT] == np.inf:
        m.rates[stage, R_ENTRY_AT] = now + _exponential(m.rates[stage, R_ENTRY])


def _take_in(m: Machine, stage: int, now: float) -> None:
    counts = m.counts[stage]
    m.ring[G_READY, stage, counts[C_READY] & (m.ring.shape[2] - 1)] = now
    counts[C_READY] += 1
    waiting = counts[C_READY] < counts[C_TAIL]
    m.rates[stage, R_ENTRY_AT] = now + _exponential(m.rates[stage, R_ENTRY]) if waiting else np.inf
    arm_pickup(m, stage, now)


def arm_pickup(m: Machine, stage: int, now: float) -> None:
    idle = m.counts[stage, C_IDLE]
    if idle == 0 or m.counts[stage, C_READY] == m.counts[stage, C_HEAD]:
        m.rates[stage, R_PICKUP_AT] = np.inf
    else:
        m.rates[stage, R_PICKUP_AT] = now + _exponential(m.rates[stage, R_POLL] / idle)


def _exponential(mean: float) -> float:
    return np.random.exponential(mean) if mean > 0.0 else 0.0


def _pick_up(m: Machine, stage: int, now: float) -> None:
    counts = m.counts[stage]
    count_time(m, stage, now)
    place = counts[C_HEAD] & (m.ring.shape[2] - 1)
    wait = now - m.ring[G_READY, stage, place]
    m.rates[stage, R_WAITED] += wait
    m.rates[stage, R_LONGEST] = max(m.rates[stage, R_LONGEST], wait)
    counts[C_HEAD] += 1
    counts[C_TAKEN] += 1
    counts[C_LOOKS] += 1
    counts[C_LOOKS_SUM] += counts[C_TAIL] - counts[C_HEAD]
    worker = m.staff[S_IDLE, stage, int(np.random.random() * counts[C_IDLE])]
    remove_idle(m, stage, worker)
    m.staff[S_BUSY, stage, worker] = 1
    counts[C_BUSY] += 1
    counts[C_BUSY_ON] += 1
    m.made[stage, worker] = m.ring[G_MADE, stage, place]
    push_event(m, now + _service_time(m, stage, now), stage, worker)
    arm_pickup(m, stage, now)


def _service_time(m: Machine, stage: int, now: float) -> float:
    mean, spread, kind = m.rates[stage, R_SERVICE], m.rates[stage, R_SPREAD], m.counts[stage, C_KIND]
    if kind == 0:
        time = np.random.exponential(mean)
    elif kind == 1:
        time = mean
    elif kind == 2:
        time = mean * np.exp(spread * np.random.standard_normal() - 0.5 * spread * spread)
    else:
        first, end = m.counts[stage, C_FIRST], m.counts[stage, C_END]
        time = m.recorded[first + int(np.random.random() * (end - first))]
    return float(time * m.clocks[SLOW_FACTOR] if now >= m.clocks[SLOW_FROM] else time)


def _work(m: Machine, now: float) -> None:
    """A worker has started, or has done its job."""
    code, turn = m.events[E_WHOSE, 0], m.events[E_TURN, 0]
    pop_event(m)
    workers = m.staff.shape[2]
    stage, worker = code // workers, code % workers
    if m.staff[S_TURN, stage, worker] != turn:
        return
    if m.staff[S_BUSY, stage, worker] == 0:
        restart(m, stage, worker, now)
        arm_pickup(m, stage, now)
        return
    counts = m.counts[stage]
    count_time(m, stage, now)
    m.staff[S_BUSY, stage, worker] = 0
    counts[C_BUSY] -= 1
    counts[C_DONE] += 1
    if m.staff[S_ON, stage, worker] == 1:
        counts[C_BUSY_ON] -= 1
        add_idle(m, stage, worker)
        arm_pickup(m, stage, now)
    made = m.made[stage, worker]
    if stage + 1 < len(m.counts):
        _offer(m, stage + 1, made, now)
    else:
        completed = m.totals[T_COMPLETED]
        if completed < len(m.latency):
            m.latency[completed] = now - made
        m.totals[T_COMPLETED] = completed + 1


def _crash(m: Machine, now: float) -> None:
    """Any worker that there could be, so that the rate never changes; one that is off has nothing to lose."""
    m.clocks[CRASH_AT] = now + np.random.exponential(1.0 / m.clocks[CRASHES])
    workers = m.staff.shape[2]
    code = int(np.random.random() * workers * len(m.counts))
    stage, worker = code // workers, code % workers
    on, busy = m.staff[S_ON, stage, worker] == 1, m.staff[S_BUSY, stage, worker] == 1
    if not on and not busy:
        return
    m.totals[T_CRASHED] += 1
    count_time(m, stage, now)
    counts = m.counts[stage]
    m.staff[S_TURN, stage, worker] += 1
    if busy:
        m.staff[S_BUSY, stage, worker] = 0
        counts[C_BUSY] -= 1
        counts[C_BUSY_ON] -= on
        counts[C_HEAD] -= 1
        place = counts[C_HEAD] & (m.ring.shape[2] - 1)
        m.ring[G_MADE, stage, place], m.ring[G_READY, stage, place] = m.made[stage, worker], now
    if on:
        if m.staff[S_PLACE, stage, worker] >= 0:
            remove_idle(m, stage, worker)
        if m.staff[S_STARTING, stage, worker] == 0:
            m.staff[S_STARTING, stage, worker] = 1
            counts[C_STARTING] += 1
        push_event(m, now + m.rates[stage, R_STARTUP], stage, worker)
    arm_pickup(m, stage, now)
