"""Who works? Workers are switched on and off, take up and lay down work, and what they cost is counted.

An area under a curve grows by what a change adds until the run's end, and shrinks again when it is undone: one
addition per change. `f` and `n` are a machine's floats and integers.
"""

from __future__ import annotations

from levada.lab.stages.machine import Floats, Integers
from levada.lab.stages.places import (
    A_LEAVING,
    A_ON,
    C_BUSY_ON,
    C_IDLE,
    C_ON,
    C_STARTING,
    CLOCKS,
    COUNTS,
    END,
    N_FLOATS,
    N_INTEGERS,
    N_WORKERS,
    R_STARTUP,
    S_BUSY,
    S_IDLE,
    S_ON,
    S_PLACE,
    S_STARTING,
    S_TURN,
    STAFF,
    TOTALS,
)
from levada.lab.stages.waiting import push_event

__all__ = ["add_idle", "remove_idle", "set_workers"]


def set_workers(f: Floats, n: Integers, stage: int, wanted: int, idle_first: bool, now: float) -> int:
    """So many are on from now; says how many were switched."""
    on = TOTALS + stage * n[N_INTEGERS] + C_ON
    before = n[on]
    if wanted > before:
        for busy in range(1 if idle_first else 0, -1, -1):  # those that still work need no start
            _switch_on(f, n, stage, wanted, busy, now)
    elif wanted < before:
        for patience in range(0 if idle_first else 2, 3):
            _switch_off(f, n, stage, wanted, patience, now)
    f[CLOCKS + stage * n[N_FLOATS] + A_ON] += (n[on] - before) * (f[END] - now)
    return int(abs(n[on] - before))


def _switch_on(f: Floats, n: Integers, stage: int, wanted: int, busy: int, now: float) -> None:
    """The lowest numbers first; only those that are busy, or any."""
    a, b = CLOCKS + stage * n[N_FLOATS], TOTALS + stage * n[N_INTEGERS]
    for worker in range(n[N_WORKERS]):
        if n[b + C_ON] >= wanted:
            return
        w = b + COUNTS + worker * STAFF
        is_busy = n[w + S_BUSY]
        if n[w + S_ON] == 1 or is_busy < busy:
            continue
        n[w + S_ON] = 1
        n[b + C_ON] += 1
        if is_busy == 1:
            n[b + C_BUSY_ON] += 1
            f[a + A_LEAVING] -= f[END] - now
        elif f[a + R_STARTUP] > 0.0:
            n[w + S_STARTING] = 1
            n[w + S_TURN] += 1
            n[b + C_STARTING] += 1
            push_event(f, n, now + f[a + R_STARTUP], stage, worker)
        else:
            add_idle(n, b, worker)


def _switch_off(f: Floats, n: Integers, stage: int, wanted: int, patience: int, now: float) -> None:
    """The highest numbers first; with patience 0 only those that start, with 1 those that are idle too, or any."""
    b = TOTALS + stage * n[N_INTEGERS]
    for worker in range(n[N_WORKERS] - 1, -1, -1):
        if n[b + C_ON] <= wanted:
            return
        w = b + COUNTS + worker * STAFF
        starting, busy = n[w + S_STARTING] == 1, n[w + S_BUSY] == 1
        if n[w + S_ON] == 0 or (patience == 0 and not starting) or (patience == 1 and busy):
            continue
        n[w + S_ON] = 0
        n[b + C_ON] -= 1
        if busy:
            n[b + C_BUSY_ON] -= 1
            f[CLOCKS + stage * n[N_FLOATS] + A_LEAVING] += f[END] - now
        elif starting:
            n[w + S_STARTING] = 0
            n[w + S_TURN] += 1
            n[b + C_STARTING] -= 1
        else:
            remove_idle(n, b, worker)


def add_idle(n: Integers, b: int, worker: int) -> None:
    """`b` is where the stage's integers begin."""
    count, staff = n[b + C_IDLE], b + COUNTS
    n[staff + count * STAFF + S_IDLE] = worker
    n[staff + worker * STAFF + S_PLACE] = count
    n[b + C_IDLE] = count + 1


def remove_idle(n: Integers, b: int, worker: int) -> None:
    """The last one takes its place."""
    count, staff = n[b + C_IDLE] - 1, b + COUNTS
    own = staff + worker * STAFF + S_PLACE
    place, last = n[own], n[staff + count * STAFF + S_IDLE]
    n[staff + place * STAFF + S_IDLE] = last
    n[staff + last * STAFF + S_PLACE] = place
    n[own] = -1
    n[b + C_IDLE] = count
