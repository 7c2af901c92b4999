"""The paper's baseline, "Real-Time": after the time between changes, put right by how late the last visits were.

Source: the EMACrawler paper of 2024, which gives `t_v = t_p + dt + t_i` and little more: the next visit is the last
one, plus the estimated time between changes, plus a weighted estimate of how late the last visits were.

The rest is our reading: of some hundred combinations, one of those closest to the paper's hourly table, in worlds
fitted to what the table says of the paper's own rule. There it misses pages, visits and changes per hour by 37% of
their means (the paper's rule its own by 25%), the plain reading, time watched by changes met, by two thirds.

    dt    the weighted mean of half the time since the last visit, over visits that met a change, which is taken
          to lie half-way; until there is one, the time since the last visit
    t_i   the weighted mean of the time since the last visit, minus where a change was met (we were late: come
          sooner) and plus where none was (we were early)

As in the table, visits crowd on the pages that changed, some minutes apart, and most of them meet nothing. The fall
of the changes met, from 288 to 92 per hour, it does not show.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import inf

from levada.freshness.bounds import check_bounds, passed, within
from levada.freshness.rule import Rule

__all__ = ["real_time"]


def real_time(
    first: float = 3600.0,
    floor: float = 60.0,
    ceiling: float = inf,
    *,
    newest: float = 0.35,
    scale: float = 1.0,
) -> Rule:
    """Comes back at once to what changed at once, and spends most visits there.

    `newest` is the weight of the newest visit in both means: the larger, the sooner a page that changed once is
    left alone again, and the nearer the next visit after one change. The sum can fall below 0, so it needs the
    floor.
    """
    check_bounds(first, floor, ceiling, scale)
    if not 0 < newest <= 1:
        raise ValueError(f"needs a weight of the newest visit above 0 and up to 1, not {newest:g}")
    return Rule("real-time", _step, 2, (first, floor, ceiling, newest, scale))


def _step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the time between changes, 0 until one was met; how early the last visits were."""
    first, floor, ceiling = parameters[0], parameters[1], parameters[2]
    newest, scale = parameters[3], parameters[4]
    if outcome == 0:
        memory[0], memory[1] = 0.0, 0.0
        return within(first * scale, 0.0, inf)
    since = passed(elapsed)
    early = since if outcome == 1 else -since
    memory[1] += newest * (early - memory[1])
    if outcome == 2:
        memory[0] += (newest if memory[0] > 0.0 else 1.0) * (since / 2 - memory[0])
    between = memory[0] if memory[0] > 0.0 else since
    return within(within(between + memory[1], floor, ceiling) * scale, 0.0, inf)
