"""What do the rows of many seeds say together?"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from levada.lab.freshness.table import Row

__all__ = ["Spread", "Summary", "summarise"]


class Spread(NamedTuple):
    """Mean and standard deviation over the seeds; None for both if no seed has a value."""

    mean: float | None
    deviation: float | None


class Summary(NamedTuple):
    world: str
    policy: str
    fetches: Spread
    freshness: Spread
    age: Spread
    caught: Spread
    delay_p50: Spread
    delay_p90: Spread
    changes_per_fetch: Spread
    gap_closed: Spread


_FIGURES = Summary._fields[2:]


def summarise(rows: Sequence[Row]) -> list[Summary]:
    """One per world and policy, in the order in which they come."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.world, row.policy), []).append(row)
    return [
        Summary(*key, *(_spread([getattr(row, figure) for row in group]) for figure in _FIGURES))
        for key, group in groups.items()
    ]


def _spread(values: Sequence[float | None]) -> Spread:
    known = [float(value) for value in values if value is not None]
    if not known:
        return Spread(None, None)
    return Spread(fmean(known), stdev(known) if len(known) > 1 else 0.0)
