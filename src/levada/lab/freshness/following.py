"""What does a rule do in a world? Every page when the rule says so, or as often as there are fetches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from levada.compiling import compiled
from levada.freshness.rule import Rule
from levada.lab.freshness.calendar import pop, push
from levada.lab.freshness.world import Floats, Integers, Visits, World

__all__ = ["follow", "follow_tuned", "follow_within", "seen_until"]

_TURNS, _NEARLY = 30, 0.995
_MOST_VISITS = 50_000_000  # a rule that wants more has lost its way


def follow(world: World, rule: Rule) -> Visits:
    """Every visit at the time the rule asks for."""
    return _run(world, rule, -1.0, _MOST_VISITS)


def follow_within(world: World, rule: Rule, fetches: int) -> Visits:
    """As many fetches, evenly over the time: each goes to the page that the rule wants soonest.

    First visits come when a page begins, and are among the fetches.
    """
    left = max(fetches - world.pages, 1)
    return _run(world, rule, world.horizon / left, fetches)


def follow_tuned(world: World, rule: Callable[[float], Rule], fetches: int) -> Visits:
    """At most so many fetches, by the knob of the rule: the higher it is set, the fewer it asks for."""
    low, high = 1e-6, 1e12
    best = None
    for _ in range(_TURNS):
        middle = (low * high) ** 0.5
        visits = _run(world, rule(middle), -1.0, fetches + 1)
        if len(visits) > fetches:
            low = middle
            continue
        best, high = visits, middle
        if len(visits) > _NEARLY * fetches:
            break
    return best or follow_within(world, rule(high), fetches)


def _run(world: World, rule: Rule, gap: float, most: int) -> Visits:
    kernel: Callable[..., tuple[Integers, Floats]] = compiled(_follow, step=rule.step)
    page, at = kernel(
        world.offsets,
        world.times,
        world.begins,
        world.ends,
        world.horizon,
        rule.width,
        np.array(rule.parameters),
        gap,
        most,
    )
    return Visits(page, at)


def seen_until(times: Floats, start: int, end: int, at: float) -> int:
    """The place after the last of `times[start:end]` that is not after `at`."""
    while start < end:
        middle = (start + end) // 2
        if times[middle] <= at:
            start = middle + 1
        else:
            end = middle
    return start


def step(memory: Floats, parameters: Floats, elapsed: float, outcome: int) -> float:
    """Stands here for the rule's own, which is put in its place."""
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
    """With a `gap` above 0 visits after the first are made one gap apart, whatever the rule says."""
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
