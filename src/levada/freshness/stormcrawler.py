"""StormCrawler's adaptive scheduler: half way to the shortest interval with a change, half as long again without.

Source: `AdaptiveScheduler` of Apache StormCrawler, with its documented defaults. It counts in whole minutes,
this in seconds and their fractions.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import inf

from levada.freshness.bounds import check_bounds, within
from levada.freshness.rule import Rule

__all__ = ["stormcrawler"]

_HOUR, _DAY = 3_600.0, 86_400.0


def stormcrawler(
    first: float = _DAY,
    floor: float = _HOUR,
    ceiling: float = 14 * _DAY,
    *,
    slower: float = 0.5,
    faster: float = 0.5,
    scale: float = 1.0,
) -> Rule:
    """The interval grows by the share `slower` without a change; with one it loses the share `faster` of what lies
    between it and `floor`, which it therefore approaches and never reaches.

    It forgets slow and fast pages equally quickly: large rates find a page's pace in a few visits and then swing
    around it. The floor of an hour is for a large web; news needs less.
    """
    check_bounds(first, floor, ceiling, scale)
    if not (0 < slower <= 1 and 0 < faster <= 1):
        raise ValueError(f"needs rates above 0 and up to 1, not {slower:g} and {faster:g}")
    return Rule("stormcrawler", _step, 1, (first, floor, ceiling, slower, faster, scale))


def _step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the interval."""
    first, floor, ceiling = parameters[0], parameters[1], parameters[2]
    slower, faster, scale = parameters[3], parameters[4], parameters[5]
    if outcome == 0 or memory[0] <= 0.0:
        memory[0] = first
    elif outcome == 2:
        memory[0] = within((1.0 - faster) * memory[0] + faster * floor, floor, ceiling)
    else:
        memory[0] = within((1.0 + slower) * memory[0], floor, ceiling)
    return within(memory[0] * scale, 0.0, inf)
