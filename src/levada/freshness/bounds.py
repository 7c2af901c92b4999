"""Which intervals are sane, whatever a rule or a clock says?

Every rule ends in `within`, so that no arithmetic and no clock that jumped can lead to a storm of visits, to a page
that is never visited again, or to something that is no number.
"""

from __future__ import annotations

from math import isfinite

__all__ = ["LEAST", "MOST", "check_bounds", "passed", "within"]

LEAST, MOST = 1e-3, 1e10  # where even a rule without bounds stops: a millisecond, three centuries


def within(seconds: float, floor: float, ceiling: float) -> float:
    """`seconds`, not below the floor and not above the ceiling; the floor for what is no number."""
    low = max(floor, LEAST)
    if not seconds > low:
        return low
    return min(seconds, ceiling, MOST)


def passed(elapsed: float) -> float:
    """The seconds since the last visit, or the least there is if the clock says that there were none."""
    if not elapsed > LEAST:
        return LEAST
    return min(elapsed, MOST)


def check_bounds(first: float, floor: float, ceiling: float, scale: float) -> None:
    if not (0 <= floor <= first <= ceiling and LEAST <= first <= MOST):
        raise ValueError(f"needs floor <= first <= ceiling, not {floor:g} s, {first:g} s, {ceiling:g} s")
    if not (isfinite(scale) and scale > 0):
        raise ValueError(f"needs a scale above 0, not {scale:g}")
