"""Thresholds of the groupings that watch hot keys: when a key is hot, and how many workers it may use."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

YOUNG_SWEEP = 15.0
MIDDLE_SWEEP = 60.0
WARM_UP = 15.0  # a sender that has run for less checks no key
CHECK = 60.0  # between two checks of a key
LEAST_WIDTH = 2


def threshold_percent(workers: int) -> float:
    """The load from which a hot key's best worker counts as full."""
    ideal = 100.0 / workers
    return ideal + sqrt(ideal)


def most_workers(workers: int) -> int:
    """The most workers that one key can get."""
    return min(workers, int(100.0 / threshold_percent(workers)) + 1)


EPSILON = 1e-4


def head_threshold(workers: int) -> float:
    """The share from which a key belongs to the head: the paper's 1 / (5 n)."""
    return 1.0 / (5.0 * workers)


def choices_needed(head: Sequence[float], workers: int) -> int:
    """The fewest choices that keep the workers even; `head` has the shares of the hot keys, greatest first.

    With head shares p_1 >= p_2 >= ... and b_h = n - n ((n - 1) / n)^(h d), the expected number of workers that the
    first h keys reach, it is the least d for which every h has

        sum of p up to h + (b_h / n)^d * rest of the head + (b_h / n)^2 * tail <= b_h (1 / n + epsilon)

    and the number of workers if there is none.
    """
    if len(head) == 0:
        return min(2, workers)
    whole = 0.0
    for share in head:
        whole += share
    for choices in range(max(2, int(head[0] * workers)), workers):
        before = 0.0
        enough = True
        for place in range(len(head)):
            before += head[place]
            reached = 1.0 - ((workers - 1.0) / workers) ** ((place + 1.0) * choices)
            load = before + reached**choices * (whole - before) + reached**2.0 * (1.0 - whole)
            if load > reached * (1.0 + EPSILON * workers):
                enough = False
                break
        if enough:
            return choices
    return workers


SOLVE_EVERY, SOLVE_EVERY_WARM = 1_000, 10_000
