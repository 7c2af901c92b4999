"""Simulation of revisit policies in a world, with the oracle.

All arithmetic is the crawler's own (`levada.freshness`), compiled: evidence, prior, price, interval. Here is only
the crawler's loop around it: one fetch per gap of the budget, to the page that has been due longest; the visited
page and one other are weighed anew, and the price follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from levada.core.compile_cache import compiled
from levada.core.errors import UsageError
from levada.freshness.estimates import EAGER, KEEP, imagined, price_for, weigh, withdraw, write_prior
from levada.freshness.rates import observe
from levada.freshness.rules import RULES, Rule, revisit_rule
from levada.freshness.value import Scale, interval_at, visit_rate
from levada.lab.freshness.worlds import Floats, Integers, LabWorld, Visits


def push(times: Floats, pages: Integers, size: int, time: float, page: int) -> None:
    """Add an entry to a heap of `size` entries."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if times[parent] <= time:
            break
        times[place], pages[place] = times[parent], pages[parent]
        place = parent
    times[place], pages[place] = time, page


def pop(times: Floats, pages: Integers, size: int) -> None:
    """Remove the first of `size` entries."""
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


_ROUNDS_OF_TUNING, _NEARLY = 30, 0.995
_MOST_VISITS = 50_000_000  # no sound rule wants more


def follow_within(world: LabWorld, rule: Rule, fetches: int) -> Visits:
    """Make this many fetches, evenly over the time: each goes to the page that the rule wants soonest.

    First visits come when a page starts, and count as fetches.
    """
    left = max(fetches - world.pages, 1)
    return _run(world, rule, world.horizon / left, fetches)


def follow_tuned(world: LabWorld, rule: Callable[[float], Rule], fetches: int) -> Visits:
    """Make at most this many fetches, by a parameter of the rule: the higher it is, the fewer fetches."""
    low, high = 1e-6, 1e12
    best = None
    for _ in range(_ROUNDS_OF_TUNING):
        middle = (low * high) ** 0.5
        visits = _run(world, rule(middle), -1.0, fetches + 1)
        if len(visits) > fetches:
            low = middle
            continue
        best, high = visits, middle
        if len(visits) > _NEARLY * fetches:
            break
    return best or follow_within(world, rule(high), fetches)


def _run(world: LabWorld, rule: Rule, gap: float, most: int) -> Visits:
    kernel: Callable[..., tuple[Integers, Floats]] = compiled(_follow, step=rule.step)
    page, at = kernel(*world.events, rule.width, np.array(rule.parameters), gap, most)
    return Visits(page, at)


def seen_until(times: Floats, start: int, end: int, at: float) -> int:
    """The index after the last of `times[start:end]` that is not after `at`."""
    while start < end:
        middle = (start + end) // 2
        if times[middle] <= at:
            start = middle + 1
        else:
            end = middle
    return start


def step(memory: Floats, parameters: Floats, elapsed: float, outcome: int) -> float:
    """Placeholder for the rule's own step, which replaces it when compiled."""
    raise NotImplementedError


def _follow(
    offsets: Integers,
    times: Floats,
    begins: Floats,
    ends: Floats,
    horizon: float,
    width: int,
    parameters: Floats,
    gap: float,
    most: int,
) -> tuple[Integers, Floats]:
    """With a `gap` above 0 all visits after the first ones are one gap apart, whatever the rule plans."""
    pages = len(begins)
    memory = np.zeros((pages, width))
    last = np.full(pages, -1.0)
    seen = np.zeros(pages, np.int64)
    due, who = np.empty(pages + 1), np.empty(pages + 1, np.int64)
    born = np.argsort(begins)
    next_born, size, slot = 0, 0, 0.0
    visited, at = [0], [0.0]
    visited.pop(), at.pop()
    while len(at) < most:
        birth = begins[born[next_born]] if next_born < pages else np.inf
        now = np.inf
        if size > 0:
            now = due[0] if gap <= 0.0 else max(slot, last[who[0]] + 1.0)
        if min(birth, now) >= horizon:
            break
        if birth <= now:
            page, now, outcome = born[next_born], birth, 0
            next_born += 1
        else:
            page = who[0]
            pop(due, who, size)
            size -= 1
            if now >= ends[page]:
                continue
            slot = now + gap
            outcome = 1
        newest = seen_until(times, seen[page], offsets[page + 1], now) if outcome else offsets[page]
        if outcome and newest > seen[page]:
            outcome = 2
        seen[page] = newest
        wait = step(memory[page], parameters, now - last[page], outcome)
        last[page] = now
        visited.append(page)
        at.append(now)
        push(due, who, size, now + wait, page)
        size += 1
    return np.array(visited), np.array(at)


_ROUNDS = 60


def run_oracle(world: LabWorld, fetches: int) -> Visits:
    """The oracle: LambdaCrawl's allocation (`levada.freshness.value`) for the actual rates, evenly spaced, at the
    one price that spends at most this many fetches, first visits among them."""
    visit, pages = compiled(_visit), (world.begins, world.ends, world.horizon, world.rates)
    none = np.empty(0, np.int64), np.empty(0)
    low, high = 1e-6, 1e12  # prices
    for _ in range(_ROUNDS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if visit(*pages, middle, *none) > fetches else (low, middle)
    count = visit(*pages, high, *none)
    page, at = np.empty(count, np.int64), np.empty(count)
    visit(*pages, high, page, at)
    order = np.argsort(at, kind="stable")
    return Visits(page[order], at[order])


def _visit(
    begins: Floats, ends: Floats, horizon: float, rates: Floats, price: float, visited: Integers, times: Floats
) -> int:
    """The number of visits at this price; as many as there is room for are written down, page by page."""
    count = 0
    for page in range(len(begins)):
        at = begins[page]
        while at < ends[page]:
            if count < len(times):
                visited[count], times[count] = page, at
            count += 1
            at = _next_visit(at, rates[page], horizon, price)
    return count


def _next_visit(at: float, rates: Floats, horizon: float, price: float) -> float:
    """Evenly spaced while the rate is constant; a visit that is overdue when the rate changes is made at once."""
    length = horizon / len(rates)
    now = at
    segment = min(int(at / length), len(rates) - 1)
    while segment < len(rates):
        wanted = visit_rate(rates[segment], 1.0, price)
        due = at + 1.0 / wanted if wanted > 0.0 else np.inf
        if max(due, now) < (segment + 1) * length:
            return max(due, now)
        segment += 1
        now = segment * length
    return np.inf


Row = Any  # an array here, and a list of floats to the crawler's own functions
Rows = Any
_SAVED = 900.0  # seconds for which an unused fetch is kept


def learn(world: LabWorld, fetches: int, floor: float = 60.0, ceiling: float = 120 * 86400.0) -> Visits:
    """The learned policy with at most this many fetches, evenly over the time, first visits among them."""
    scale = Scale.between(floor, ceiling)
    kernel: Callable[..., tuple[Integers, Floats]] = compiled(_learn)
    page, at = kernel(
        *world.events,
        world.sites,
        max(fetches - world.pages, 1) / world.horizon,
        fetches,
        *map(np.array, (scale.rates, scale.intervals, scale.worths, scale.prices, imagined(scale.rates))),
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
    probabilities: Rows = np.zeros((pages, kinds + len(prices)))
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
    while len(at) < most:  # repeats lines of `_follow`: numba compiles a loop whole, with its counters in registers
        birth = begins[born[next_born]] if next_born < pages else np.inf
        now = max(slot, due[0]) if size > 0 else np.inf
        if min(birth, now) >= horizon:
            break
        first = birth <= now  # as in the loop above: compiled functions cannot share a loop with different steps in it
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
                    probabilities[each],
                    share[each],
                    everywhere,
                    here[sites[each]],
                )
        price = price_for(everywhere, kinds, prices, EAGER * budget)
        wait = interval_at(probabilities[page], kinds, intervals, worths, price, 0.0)
        push(due, who, size, now + wait, page)
        size += 1
    return np.array(visited), np.array(at)


POLICIES = (*RULES, "oracle", "learned")
# The parameter that changes a rule's number of fetches. The other rules adapt to any such setting: they spend the
# fetches on the page that they want soonest, due or not.
_PARAMETERS = {"cho": "price", "stormcrawler": "scale"}


def simulate(world: LabWorld, policy: str, fetches: int | None = None) -> Visits:
    """The visits of a policy. Without `fetches` a rule makes as many as it plans; `oracle` and `learned` need
    it."""
    if policy not in ("oracle", "learned"):
        if fetches is None:
            return _run(world, revisit_rule(policy), -1.0, _MOST_VISITS)
        if policy in _PARAMETERS:
            return follow_tuned(world, lambda setting: revisit_rule(policy, **{_PARAMETERS[policy]: setting}), fetches)
        return follow_within(world, revisit_rule(policy), fetches)
    if fetches is None:
        raise UsageError(f"{policy} spends a budget: give the number of fetches")
    return run_oracle(world, fetches) if policy == "oracle" else learn(world, fetches)
