"""Which page comes next? A binary heap of (time, page) in two arrays, for compiled code."""

from __future__ import annotations

from levada.lab.freshness.world import Floats, Integers

__all__ = ["pop", "push"]


def push(times: Floats, pages: Integers, size: int, time: float, page: int) -> None:
    """Into a heap of `size` entries."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if times[parent] <= time:
            break
        times[place], pages[place] = times[parent], pages[parent]
        place = parent
    times[place], pages[place] = time, page


def pop(times: Floats, pages: Integers, size: int) -> None:
    """Take the first of `size` entries away."""
    last = size - 1
    time, page = times[last], pages[last]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        if child + 1 < last and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[place], pages[place] = times[child], pages[child]
        place = child
    times[place], pages[place] = time, page
