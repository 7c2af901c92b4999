"""Who works? Workers are switched on and off, take up and lay down work, and what they cost is counted."""

from __future__ import annotations

from levada.lab.stages.machine import Machine
from levada.lab.stages.places import (
    A_BUSY,
    A_LAST,
    A_ON,
    A_PAID,
    A_QUEUE,
    C_BUSY,
    C_BUSY_ON,
    C_HEAD,
    C_IDLE,
    C_ON,
    C_STARTING,
    C_TAIL,
    E_TURN,
    E_WHOSE,
    R_STARTUP,
    S_BUSY,
    S_IDLE,
    S_ON,
    S_PLACE,
    S_STARTING,
    S_TURN,
    T_HEAP,
)

__all__ = ["add_idle", "count_time", "pop_event", "push_event", "remove_idle", "restart", "set_workers"]


def count_time(m: Machine, stage: int, now: float) -> None:
    """Before anything changes there. Paid are workers that are on or busy."""
    areas, counts = m.rates[stage], m.counts[stage]
    elapsed = now - areas[A_LAST]
    areas[A_LAST] = now
    areas[A_QUEUE] += elapsed * (counts[C_TAIL] - counts[C_HEAD])
    areas[A_ON] += elapsed * counts[C_ON]
    areas[A_PAID] += elapsed * (counts[C_ON] + counts[C_BUSY] - counts[C_BUSY_ON])
    areas[A_BUSY] += elapsed * counts[C_BUSY]


def set_workers(m: Machine, stage: int, wanted: int, idle_first: bool, now: float) -> int:
    """So many are on from now; says how many were switched."""
    count_time(m, stage, now)
    before = m.counts[stage, C_ON]
    if wanted > before:
        if idle_first:  # those that still work need no start
            _switch_on(m, stage, wanted, 1, now)
        _switch_on(m, stage, wanted, 0, now)
    elif wanted < before:
        if idle_first:
            _switch_off(m, stage, wanted, 0, now)
            _switch_off(m, stage, wanted, 1, now)
        _switch_off(m, stage, wanted, 2, now)
    return int(abs(m.counts[stage, C_ON] - before))


def _switch_on(m: Machine, stage: int, wanted: int, busy: int, now: float) -> None:
    """The lowest numbers first; only those that are busy, or any."""
    counts = m.counts[stage]
    for worker in range(m.staff.shape[2]):
        if counts[C_ON] >= wanted:
            return
        if m.staff[S_ON, stage, worker] == 1 or m.staff[S_BUSY, stage, worker] < busy:
            continue
        m.staff[S_ON, stage, worker] = 1
        counts[C_ON] += 1
        if m.staff[S_BUSY, stage, worker] == 1:
            counts[C_BUSY_ON] += 1
        elif m.rates[stage, R_STARTUP] > 0.0:
            m.staff[S_STARTING, stage, worker] = 1
            counts[C_STARTING] += 1
            m.staff[S_TURN, stage, worker] += 1
            push_event(m, now + m.rates[stage, R_STARTUP], stage, worker)
        else:
            add_idle(m, stage, worker)


def _switch_off(m: Machine, stage: int, wanted: int, patience: int, now: float) -> None:
    """The highest numbers first; with patience 0 only those that start, with 1 those that are idle too, or any."""
    counts = m.counts[stage]
    for worker in range(m.staff.shape[2] - 1, -1, -1):
        if counts[C_ON] <= wanted:
            return
        starting, busy = m.staff[S_STARTING, stage, worker] == 1, m.staff[S_BUSY, stage, worker] == 1
        if m.staff[S_ON, stage, worker] == 0 or (patience == 0 and not starting) or (patience == 1 and busy):
            continue
        m.staff[S_ON, stage, worker] = 0
        counts[C_ON] -= 1
        if busy:
            counts[C_BUSY_ON] -= 1
        elif starting:
            m.staff[S_STARTING, stage, worker] = 0
            counts[C_STARTING] -= 1
            m.staff[S_TURN, stage, worker] += 1
        else:
            remove_idle(m, stage, worker)


def restart(m: Machine, stage: int, worker: int, now: float) -> None:
    m.staff[S_STARTING, stage, worker] = 0
    m.counts[stage, C_STARTING] -= 1
    add_idle(m, stage, worker)


def add_idle(m: Machine, stage: int, worker: int) -> None:
    count = m.counts[stage, C_IDLE]
    m.staff[S_IDLE, stage, count] = worker
    m.staff[S_PLACE, stage, worker] = count
    m.counts[stage, C_IDLE] = count + 1


def remove_idle(m: Machine, stage: int, worker: int) -> None:
    """The last one takes its place."""
    count = m.counts[stage, C_IDLE] - 1
    place, last = m.staff[S_PLACE, stage, worker], m.staff[S_IDLE, stage, count]
    m.staff[S_IDLE, stage, place] = last
    m.staff[S_PLACE, stage, last] = place
    m.staff[S_PLACE, stage, worker] = -1
    m.counts[stage, C_IDLE] = count


def push_event(m: Machine, at: float, stage: int, worker: int) -> None:
    """Into the heap; there is room for four events per worker, and void ones leave when their time comes."""
    place = m.totals[T_HEAP]
    if place >= len(m.due):
        raise MemoryError("too many workers were switched while they started")
    m.totals[T_HEAP] = place + 1
    while place > 0:
        parent = (place - 1) >> 1
        if m.due[parent] <= at:
            break
        _move_event(m, parent, place)
        place = parent
    m.due[place] = at
    m.events[E_WHOSE, place] = stage * m.staff.shape[2] + worker
    m.events[E_TURN, place] = m.staff[S_TURN, stage, worker]


def pop_event(m: Machine) -> None:
    """Drops the earliest."""
    size = m.totals[T_HEAP] - 1
    m.totals[T_HEAP] = size
    at = m.due[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and m.due[child + 1] < m.due[child]:
            child += 1
        if m.due[child] >= at:
            break
        _move_event(m, child, place)
        place = child
    _move_event(m, size, place)


def _move_event(m: Machine, source: int, target: int) -> None:
    m.due[target] = m.due[source]
    m.events[E_WHOSE, target] = m.events[E_WHOSE, source]
    m.events[E_TURN, target] = m.events[E_TURN, source]
