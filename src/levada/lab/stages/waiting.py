"""Which worker is done next? A heap of times, each with its worker and that worker's turn.

Four children to a place: half as deep as with two, and the children's times lie side by side.
"""

from __future__ import annotations

import math

from levada.lab.stages.machine import Floats, Integers
from levada.lab.stages.places import COUNTS, N_EVENTS, N_HEAP, N_INTEGERS, S_TURN, STAFF, T_HEAP, TOTALS

__all__ = ["pop_event", "push_event"]


def push_event(f: Floats, n: Integers, at: float, stage: int, worker: int) -> None:
    """There is room for four events per worker, and void ones leave when their time comes."""
    place = n[T_HEAP]
    if n[N_EVENTS] + place + 4 >= len(n):
        raise MemoryError("too many workers were switched while they started")
    n[T_HEAP] = place + 1
    turn = n[TOTALS + stage * n[N_INTEGERS] + COUNTS + worker * STAFF + S_TURN]
    _rise(f, n, place, at, (turn << 32) | (stage << 24) | worker)


def pop_event(f: Floats, n: Integers) -> int:
    """Drops the earliest, and says which it was: turn, stage (of 8 bits) and worker (of 24) in one number.

    The last event falls through the gap to the bottom and rises again, which is hardly ever far. Places behind the
    last are infinitely late, so that there are always four children, chosen from without a branch.
    """
    due, events = n[N_HEAP], n[N_EVENTS]
    size = n[T_HEAP] - 1
    n[T_HEAP] = size
    first: int = n[events]
    at, place, child = f[due + size], due, due + 1
    f[due + size] = math.inf
    while child < due + size:
        one, two = child, child + 2
        one += 1 if f[one + 1] < f[one] else 0
        two += 1 if f[two + 1] < f[two] else 0
        one = two if f[two] < f[one] else one
        f[place] = f[one]
        n[events + place - due] = n[events + one - due]
        place = one
        child = due + 4 * (place - due) + 1
    if size > 0:
        _rise(f, n, place - due, at, n[events + size])
    return first


def _rise(f: Floats, n: Integers, place: int, at: float, event: int) -> None:
    due, events = n[N_HEAP], n[N_EVENTS]
    while place > 0:
        parent = (place - 1) >> 2
        if f[due + parent] <= at:
            break
        f[due + place] = f[due + parent]
        n[events + place] = n[events + parent]
        place = parent
    f[due + place] = at
    n[events + place] = event
