"""How many choices do the hot keys need, so that no set of workers is asked for more than its share?

Source: Nasir et al., "When Two Choices Are not Enough: Balancing at Scale in Distributed Stream Processing" (ICDE
2016). With head shares p_1 >= p_2 >= ... and b_h = n - n ((n - 1) / n)^(h d), the expected number of workers that
the first h keys reach, d is the least for which every h has

    sum of p up to h + (b_h / n)^d * the rest of the head + (b_h / n)^2 * the tail <= b_h (1 / n + epsilon)
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["EPSILON", "choices_needed", "head_threshold"]

EPSILON = 1e-4


def head_threshold(workers: int) -> float:
    """The share from which a key belongs to the head: the paper's 1 / (5 n)."""
    return 1.0 / (5.0 * workers)


def choices_needed(head: Sequence[float], workers: int) -> int:
    """`head`: shares, greatest first. As many as there are workers where no fewer will do."""
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
            asked = before + reached**choices * (whole - before) + reached**2.0 * (1.0 - whole)
            if asked > reached * (1.0 + EPSILON * workers):
                enough = False
                break
        if enough:
            return choices
    return workers
