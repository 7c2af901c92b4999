"""When is a worker full for dynamic key grouping, and when does it look?

Source: the Dynamic Key Grouping thesis (2018), its table 1 and the periods of its sweeps.
"""

from __future__ import annotations

from math import sqrt

__all__ = [
    "CHECK",
    "LEAST_WIDTH",
    "MIDDLE_SWEEP",
    "WARM_UP",
    "YOUNG_SWEEP",
    "most_workers",
    "threshold_percent",
]

YOUNG_SWEEP = 15.0
MIDDLE_SWEEP = 60.0
WARM_UP = 15.0  # a sender that has run for less looks at no key
CHECK = 60.0  # between two looks at a key
LEAST_WIDTH = 2


def threshold_percent(workers: int) -> float:
    """The load from which a hot key's best worker counts as full."""
    ideal = 100.0 / workers
    return ideal + sqrt(ideal)


def most_workers(workers: int) -> int:
    """How many workers one key can come to use."""
    return min(workers, int(100.0 / threshold_percent(workers)) + 1)
