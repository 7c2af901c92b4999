"""What does Levada's own policy do in a world? The crawler's decisions and its budget, in virtual time.

Every piece of arithmetic is the crawler's own (`levada.freshness`), compiled: evidence, prior, price, interval.
Here is only what the crawler's loop does around it: one fetch per gap of the budget, to the page that is due
longest; the visited page and one other are weighed anew, and the price follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from levada.compiling import compiled
from levada.freshness.panel import EAGER, KEEP, imagined, price_for, weigh, withdraw, write_prior
from levada.freshness.rates import observe
from levada.freshness.worth import Scale, interval_at
from levada.lab.freshness.calendar import pop, push
from levada.lab.freshness.following import seen_until
from levada.lab.freshness.world import Floats, Integers, Visits, World

__all__ = ["learn"]

Row = Any  # an array here, and a list of floats to the crawler's own functions
Rows = Any
_SAVED = 900.0  # seconds for which a fetch that was not needed when it could be made is kept for later


def learn(world: World, fetches: int, floor: float = 60.0, ceiling: float = 120 * 86400.0) -> Visits:
    """At most so many fetches, evenly over the time; first visits come when a page begins and are among them."""
    scale = Scale.between(floor, ceiling)
    kernel: Callable[..., tuple[Integers, Floats]] = compiled(_learn)
    page, at = kernel(
        world.offsets,
        world.times,
        world.begins,
        world.ends,
        world.horizon,
        world.sites,
        max(fetches - world.pages, 1) / world.horizon,
        fetches,
        np.array(scale.rates),
        np.array(scale.intervals),
        np.array(scale.worths),
        np.array(scale.prices),
        np.array(imagined(scale.rates)),
    )
    return Visits(page, at)


def _learn(
    offsets: Integers,
    times: Floats,
    begins: Floats,
    ends: Floats,
    horizon: float,
    sites: Integers,
    budget: float,
    most: int,
    rates: Row,
    intervals: Row,
    worths: Row,
    prices: Row,
    before: Row,
) -> tuple[Integers, Floats]:
    pages, kinds = len(begins), len(rates)
    evidence: Rows = np.zeros((pages, kinds))
    belief: Rows = np.zeros((pages, kinds + len(prices)))
    share: Rows = np.zeros((pages, kinds + len(prices)))
    everywhere: Row = np.zeros(kinds + len(prices))
    here: Rows = np.zeros((sites.max() + 1, kinds + len(prices)))
    prior: Row = np.zeros(kinds)
    last = np.full(pages, -1.0)
    seen = np.zeros(pages, np.int64)
    due, who = np.empty(pages + 1), np.empty(pages + 1, np.int64)
    born = np.argsort(begins)
    next_born, size, slot, gap = 0, 0, 0.0, 1.0 / budget
    visited, at = [0], [0.0]
    visited.pop(), at.pop()
    while len(at) < most:
        birth = begins[born[next_born]] if next_born < pages else np.inf
        now = max(slot, due[0]) if size > 0 else np.inf
        if min(birth, now) >= horizon:
            break
        first = birth <= now
        if first:
            page, now = born[next_born], birth
            next_born += 1
        else:
            page = who[0]
            pop(due, who, size)
            size -= 1
            if now >= ends[page]:
                withdraw(share[page], everywhere, here[sites[page]])
                continue
            slot = max(slot + gap, now - _SAVED)
        newest = offsets[page] if first else seen_until(times, seen[page], offsets[page + 1], now)
        if not first:
            observe(evidence[page], rates, now - last[page], newest > seen[page], KEEP, -1.0, 0.0, 0.0)
        seen[page] = newest
        last[page] = now
        visited.append(page)
        at.append(now)
        other = page if first or len(at) % 2 else born[len(at) // 2 % next_born]
        for each in (other, page):
            if ends[each] > now and (each == page or last[each] >= 0.0):
                write_prior(prior, everywhere, here[sites[each]], before)
                weigh(
                    evidence[each],
                    prior,
                    intervals,
                    worths,
                    prices,
                    1.0,
                    1.0,
                    belief[each],
                    share[each],
                    everywhere,
                    here[sites[each]],
                )
        price = price_for(everywhere, kinds, prices, EAGER * budget)
        wait = interval_at(belief[page], kinds, intervals, worths, price, 0.0)
        push(due, who, size, now + wait, page)
        size += 1
    return np.array(visited), np.array(at)
