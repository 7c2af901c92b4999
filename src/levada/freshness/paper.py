"""The rules of the EMACrawler paper: EMA, and Real-Time as far as the paper describes it.

EMA. The paper's text describes an exponential moving average over outcomes with a smoothing of 0.2; its trace of
one URL shows what was run. With `I` the stored interval and `k` the changes among the ten outcomes before a visit:

    unchanged:  I *= 1.2 + 0.08 k
    changed:    I /= 1.3 + 0.08 k

The first interval is 60 minutes. The paper states no floor and no ceiling; a crawler needs both, so they are
options here, off by default. A change brings the next visit nearer, but not every later one: `k` speeds up the
growth too, so a page that changed and was then unchanged for seven visits waits longer than one that never
changed.

Of Real-Time, the paper gives `t_v = t_p + dt + t_i` and little more: the next visit is the last one, plus the
estimated time between changes, plus a weighted estimate of how late the last visits were. The rest is our reading,
one of the closest to the paper's hourly table among a hundred combinations, in worlds fitted to what the table says
about EMA. There it misses pages, visits and changes per hour by 37% of their means (EMA its own by 25%); the plain
reading, the observed time divided by the changes, misses them by two thirds.

    dt    the weighted mean of half the time since the last visit, over visits that met a change, which is assumed
          half-way; until the first change, the time since the last visit
    t_i   the weighted mean of the time since the last visit: negative with a change (the visit was late, so come
          sooner) and positive without (it was early)

As in the table, visits crowd on the pages that changed, a few minutes apart, and most of them meet no change. It
does not show the table's fall of the changes met, from 288 to 92 per hour.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import inf

from levada.freshness.rules import Rule, check_bounds, passed, within

_REMEMBERED = 10


def ema(first: float = 3600.0, floor: float = 0.0, ceiling: float = inf, scale: float = 1.0) -> Rule:
    """Visits every changing page so often that about 47% of its visits meet a change; it has no budget parameter.

    `first` is the interval after the first visit; the further it is from what a page needs, the more visits it
    takes to get there, four to six for a factor of three. `floor` limits what a page can cost, `ceiling` how long
    an unchanged page is left alone. Because the rule follows its hits, `scale` changes only its beginning.
    """
    check_bounds(first, floor, ceiling, scale)
    return Rule("ema", _ema_step, 2, (first, floor, ceiling, scale))


def _ema_step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the interval; the last ten outcomes as bits, the newest lowest."""
    first, floor, ceiling, scale = parameters[0], parameters[1], parameters[2], parameters[3]
    if outcome == 0 or memory[0] <= 0.0:
        memory[0], memory[1] = first, 0.0
    else:
        bits = int(memory[1])
        changes = 0
        for place in range(_REMEMBERED):
            changes += (bits >> place) & 1
        if outcome == 2:
            memory[0] /= 1.3 + 0.08 * changes
        else:
            memory[0] *= 1.2 + 0.08 * changes
        memory[0] = within(memory[0], floor, ceiling)
        memory[1] = float((2 * bits + outcome - 1) % 2**_REMEMBERED)
    return within(memory[0] * scale, 0.0, inf)


def real_time(
    first: float = 3600.0,
    floor: float = 60.0,
    ceiling: float = inf,
    *,
    newest: float = 0.35,
    scale: float = 1.0,
) -> Rule:
    """Returns soon to a page that changed soon, and spends most visits there.

    `newest` is the weight of the newest visit in both means: the larger, the nearer the next visit after a change,
    and the sooner the page is left alone again. The sum can fall below 0, so the rule needs the floor.
    """
    check_bounds(first, floor, ceiling, scale)
    if not 0 < newest <= 1:
        raise ValueError(f"needs a weight of the newest visit above 0 and up to 1, not {newest:g}")
    return Rule("real-time", _real_time_step, 2, (first, floor, ceiling, newest, scale))


def _real_time_step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the time between changes, 0 until the first; how early the last visits were."""
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
