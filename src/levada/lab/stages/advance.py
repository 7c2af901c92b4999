"""What happens until then? One event after the other: jobs are made, picked up and done.

A poll of an empty queue changes nothing, so that polls are not events: while jobs are ready and workers idle, the
next pickup comes after an exponential time at the rate of all idle workers' polls together, which is the same. Nor
is the taking in of a job, one after the other: when it will be over is known from the beginning.
"""

from __future__ import annotations

import math

from levada.lab.stages.chance import exponential, normal, uniform
from levada.lab.stages.machine import Floats, Integers
from levada.lab.stages.places import (
    A_BUSY,
    A_LEAVING,
    A_QUEUE,
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
    C_STARTING,
    C_TAIL,
    C_TAKEN,
    CLOCKS,
    COUNTS,
    CRASH_AT,
    CRASHES,
    END,
    HELD,
    INTERVAL,
    LOAD_AT,
    N_FED,
    N_FLOATS,
    N_HEAP,
    N_INTEGERS,
    N_LATENCIES,
    N_LATENCY,
    N_LOAD,
    N_RECORDED,
    N_ROOM,
    N_STAGES,
    N_WORKERS,
    NOW,
    R_ENTRY,
    R_LONGEST,
    R_PICKUP_AT,
    R_POLL,
    R_SERVICE,
    R_SPREAD,
    R_STARTUP,
    R_TAKEN_IN,
    R_WAITED,
    RATES,
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
    STAFF,
    T_COMPLETED,
    T_CRASHED,
    T_LOAD,
    T_MADE,
    TOTALS,
)
from levada.lab.stages.waiting import pop_event, push_event
from levada.lab.stages.workforce import add_idle, remove_idle

__all__ = ["advance", "arm_pickup", "arm_source"]

_SOURCE, _LOAD, _CRASH, _WORKER, _PICKUP = range(5)


def advance(f: Floats, n: Integers, until: float) -> None:
    """`f` and `n` are a machine's floats and integers."""
    stages, floats, due = n[N_STAGES], n[N_FLOATS], n[N_HEAP]
    while True:
        at, what, stage = f[SOURCE_AT], _SOURCE, n[N_FED]
        if f[LOAD_AT] < at:
            at, what = f[LOAD_AT], _LOAD
        if f[CRASH_AT] < at:
            at, what = f[CRASH_AT], _CRASH
        if f[due] < at:
            at, what = f[due], _WORKER
        for place in range(stages):
            if f[CLOCKS + place * floats + R_PICKUP_AT] < at:
                at, what, stage = f[CLOCKS + place * floats + R_PICKUP_AT], _PICKUP, place
        if at > until:
            f[NOW] = until
            return
        f[NOW] = at
        if what == _PICKUP:
            _pick_up(f, n, stage, at)
        elif what == _WORKER:
            _work(f, n, at)
        elif what == _SOURCE:
            n[T_MADE] += 1
            arm_source(f, n, at)
            _offer(f, n, stage, at, at)
        elif what == _LOAD:
            _change_load(f, n, at)
        else:
            _crash(f, n, at)


def arm_source(f: Floats, n: Integers, now: float) -> None:
    if f[SCANNERS] <= 1e-9 or f[HELD] > 0.0:
        f[SOURCE_AT] = math.inf
    else:
        f[SOURCE_AT] = now + exponential(n, f[INTERVAL] / f[SCANNERS])


def _change_load(f: Floats, n: Integers, now: float) -> None:
    """Pairs of a time and a change."""
    place = n[N_LOAD] + 2 * n[T_LOAD]
    f[SCANNERS] += f[place + 1]
    n[T_LOAD] += 1
    f[LOAD_AT] = f[place + 2]
    arm_source(f, n, now)


def _offer(f: Floats, n: Integers, stage: int, made: float, now: float) -> None:
    a, b, room = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS], n[N_ROOM]
    n[b + C_ARRIVED] += 1
    tail = n[b + C_TAIL]
    length = tail - n[b + C_HEAD]
    if length > n[b + C_CAPACITY]:  # one more may be on its way in
        n[b + C_DROPPED] += 1
        return
    f[a + R_TAKEN_IN] = max(now, f[a + R_TAKEN_IN]) + exponential(n, f[a + R_ENTRY])
    place = a + RATES + (tail & (room - 1))
    f[place], f[place + room] = made, f[a + R_TAKEN_IN]
    f[a + A_QUEUE] += f[END] - now
    n[b + C_TAIL] = tail + 1
    n[b + C_MOST] = max(n[b + C_MOST], length + 1)
    n[b + C_LOOKS] += 1
    n[b + C_LOOKS_SUM] += length + 1
    if length == 0:
        arm_pickup(f, n, stage, now)


def arm_pickup(f: Floats, n: Integers, stage: int, now: float) -> None:
    a, b, room = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS], n[N_ROOM]
    idle, head = n[b + C_IDLE], n[b + C_HEAD]
    if idle == 0 or head == n[b + C_TAIL]:
        f[a + R_PICKUP_AT] = math.inf
    else:
        ready = f[a + RATES + room + (head & (room - 1))]
        f[a + R_PICKUP_AT] = max(now, ready) + exponential(n, f[a + R_POLL] / idle)


def _pick_up(f: Floats, n: Integers, stage: int, now: float) -> None:
    a, b, room = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS], n[N_ROOM]
    head, left = n[b + C_HEAD], f[END] - now
    place = a + RATES + (head & (room - 1))
    wait = now - f[place + room]
    f[a + R_WAITED] += wait
    f[a + R_LONGEST] = max(f[a + R_LONGEST], wait)
    f[a + A_QUEUE] -= left
    f[a + A_BUSY] += left
    n[b + C_HEAD] = head + 1
    n[b + C_TAKEN] += 1
    n[b + C_LOOKS] += 1
    n[b + C_LOOKS_SUM] += n[b + C_TAIL] - head - 1
    worker = n[b + COUNTS + int(uniform(n) * n[b + C_IDLE]) * STAFF + S_IDLE]
    remove_idle(n, b, worker)
    n[b + COUNTS + worker * STAFF + S_BUSY] = 1
    n[b + C_BUSY] += 1
    n[b + C_BUSY_ON] += 1
    f[a + RATES + 2 * room + worker] = f[place]
    push_event(f, n, now + _service_time(f, n, stage, now), stage, worker)
    arm_pickup(f, n, stage, now)


def _service_time(f: Floats, n: Integers, stage: int, now: float) -> float:
    a, b = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS]
    mean, spread, kind = f[a + R_SERVICE], f[a + R_SPREAD], n[b + C_KIND]
    if kind == 0:
        time = exponential(n, mean)
    elif kind == 1:
        time = mean
    elif kind == 2:
        time = mean * math.exp(spread * normal(n) - 0.5 * spread * spread)
    else:
        first, end = n[b + C_FIRST], n[b + C_END]
        time = f[n[N_RECORDED] + first + int(uniform(n) * (end - first))]
    return float(time * f[SLOW_FACTOR] if now >= f[SLOW_FROM] else time)


def _work(f: Floats, n: Integers, now: float) -> None:
    """A worker has started, or has done its job."""
    code = pop_event(f, n)
    worker, stage = code & 0xFFFFFF, (code >> 24) & 0xFF
    b = TOTALS + stage * n[N_INTEGERS]
    w = b + COUNTS + worker * STAFF
    if n[w + S_TURN] != code >> 32:
        return
    if n[w + S_BUSY] == 1:
        _finish(f, n, stage, worker, now)
    else:
        n[w + S_STARTING] = 0
        n[b + C_STARTING] -= 1
        add_idle(n, b, worker)
        arm_pickup(f, n, stage, now)


def _finish(f: Floats, n: Integers, stage: int, worker: int, now: float) -> None:
    a, b = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS]
    _lay_down(f, n, stage, worker, now)
    n[b + C_DONE] += 1
    if n[b + COUNTS + worker * STAFF + S_ON] == 1:
        add_idle(n, b, worker)
        arm_pickup(f, n, stage, now)
    made = f[a + RATES + 2 * n[N_ROOM] + worker]
    if stage + 1 < n[N_STAGES]:
        _offer(f, n, stage + 1, made, now)
    else:
        if n[T_COMPLETED] < n[N_LATENCIES]:
            f[n[N_LATENCY] + n[T_COMPLETED]] = now - made
        n[T_COMPLETED] += 1


def _lay_down(f: Floats, n: Integers, stage: int, worker: int, now: float) -> None:
    a, b, left = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS], f[END] - now
    w = b + COUNTS + worker * STAFF
    n[w + S_BUSY] = 0
    n[b + C_BUSY] -= 1
    f[a + A_BUSY] -= left
    if n[w + S_ON] == 1:
        n[b + C_BUSY_ON] -= 1
    else:
        f[a + A_LEAVING] -= left


def _crash(f: Floats, n: Integers, now: float) -> None:
    """Any worker that there could be, so that the rate never changes; one that is off has nothing to lose."""
    f[CRASH_AT] = now + exponential(n, 1.0 / f[CRASHES])
    workers = n[N_WORKERS]
    code = int(uniform(n) * workers * n[N_STAGES])
    stage, worker = code // workers, code % workers
    b = TOTALS + stage * n[N_INTEGERS]
    w = b + COUNTS + worker * STAFF
    if n[w + S_ON] + n[w + S_BUSY] == 0:
        return
    n[T_CRASHED] += 1
    n[w + S_TURN] += 1
    if n[w + S_BUSY] == 1:
        _give_back(f, n, stage, worker, now)
    if n[w + S_ON] == 1:
        if n[w + S_PLACE] >= 0:
            remove_idle(n, b, worker)
        n[b + C_STARTING] += 1 - n[w + S_STARTING]
        n[w + S_STARTING] = 1
        push_event(f, n, now + f[CLOCKS + stage * n[N_FLOATS] + R_STARTUP], stage, worker)
    arm_pickup(f, n, stage, now)


def _give_back(f: Floats, n: Integers, stage: int, worker: int, now: float) -> None:
    """The job of a worker that crashed goes to the head of its queue."""
    a, b, room = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS], n[N_ROOM]
    _lay_down(f, n, stage, worker, now)
    n[b + C_HEAD] -= 1
    place = a + RATES + (n[b + C_HEAD] & (room - 1))
    f[place], f[place + room] = f[a + RATES + 2 * room + worker], now
    f[a + A_QUEUE] += f[END] - now
