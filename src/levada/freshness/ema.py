"""The paper's rule: a page's interval grows while it stands still and shrinks when it changes.

Source: the EMACrawler paper of 2024. Its text describes an exponential moving average over outcomes with a
smoothing of 0.2; its own trace of one URL shows what was run. With `I` the stored interval and `k` the changes
among the ten outcomes before this visit:

    unchanged:  I *= 1.2 + 0.08 k
    changed:    I /= 1.3 + 0.08 k

The first interval is 60 minutes. The paper states no floor and no ceiling; a crawler needs both, so they are
options here, and off by default as in the paper.

A change brings the next visit nearer, but not every later one: as `k` speeds up the growth too, a page that changed
and then stood still for seven visits waits longer than one that never changed.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import inf

from levada.freshness.bounds import check_bounds, within
from levada.freshness.rule import Rule

__all__ = ["ema"]

_REMEMBERED = 10


def ema(first: float = 3600.0, floor: float = 0.0, ceiling: float = inf, scale: float = 1.0) -> Rule:
    """Visits every changing page so often that about 47% of its visits meet a change; has no budget knob.

    `first` is the interval after the first visit; the further it is from what a page needs, the more visits it
    takes to get there, four to six for a factor of three. `floor` caps what a page can cost, `ceiling` how long a
    page that stood still is trusted to do so. As the rule follows its hits, `scale` moves only its beginning.
    """
    check_bounds(first, floor, ceiling, scale)
    return Rule("ema", _step, 2, (first, floor, ceiling, scale))


def _step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the interval; the last ten outcomes as bits, the newest lowest."""
    first, floor, ceiling, scale = parameters[0], parameters[1], parameters[2], parameters[3]
    if outcome == 0 or memory[0] <= 0.0:
        memory[0], memory[1] = first, 0.0
    else:
        bits = int(memory[1])
        changes = 0
        for place in range(_REMEMBERED):
            changes += (bits >> place) & 1
        memory[0] = within(_next(memory[0], changes, outcome == 2), floor, ceiling)
        memory[1] = float((2 * bits + outcome - 1) % 2**_REMEMBERED)
    return within(memory[0] * scale, 0.0, inf)


def _next(interval: float, changes: int, changed: bool) -> float:
    if changed:
        return interval / (1.3 + 0.08 * changes)
    return interval * (1.2 + 0.08 * changes)
