"""The rules of other crawlers: Nutch, StormCrawler, and the estimator of Cho and Garcia-Molina.

Nutch. Source: `AdaptiveFetchSchedule` of 1.x and the defaults of its `nutch-default.xml`. Where code and
configuration differ (rates of .2, .2 and .2 against .4, .2 and .3), the configuration is what runs. One
difference: at its ceiling, Nutch can plan visits in the past again and again (NUTCH-1564); here the pull is at
most its share of the interval.

StormCrawler. Source: its `AdaptiveScheduler`, with the documented defaults, in seconds and not in whole minutes.

Cho and Garcia-Molina. Source: Estimating frequency of change (ACM TOIT 3(3), 2003), the corrected estimator: if `q`
of `n` visits at equal intervals met no change, the page changes `-log((q + 0.5) / (n + 0.5))` times per interval. The
allocation of `levada.freshness.value` at a fixed price turns the estimate into visits. Two things are Levada's: visits
are not at equal intervals, so the mean interval is used; and until the first change, the estimate is that of half a
change, because an estimate of 0 would end the visits.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from math import inf, log

from levada.freshness.rules import Rule, check_bounds, passed, within
from levada.freshness.value import visit_rate

_HOUR, _DAY = 3_600.0, 86_400.0


def nutch(
    first: float = 30 * _DAY,
    floor: float = 60.0,
    ceiling: float = 365 * _DAY,
    *,
    slower: float = 0.4,
    faster: float = 0.2,
    pull: float = 0.3,
    scale: float = 1.0,
) -> Rule:
    """The interval grows by the share `slower` without a change and shrinks by the share `faster` with one.

    Their balance decides the share of visits that meet a change: with .4 and .2 three of five, with .2 and .2 a
    little under half. A first interval of 30 days suits a crawl of the whole web, and learns nothing within a week.
    With `pull` above 0, the interval is at least the time since the last observed change, and the next visit comes
    earlier by that share of this time; 0 turns both off.
    """
    check_bounds(first, floor, ceiling, scale)
    if not (slower > 0 and 0 < faster < 1 and 0 <= pull < 1):
        raise ValueError(f"needs slower > 0, faster and pull below 1, not {slower:g}, {faster:g}, {pull:g}")
    return Rule("nutch", _nutch_step, 2, (first, floor, ceiling, slower, faster, pull, scale))


def nutch_22(first: float = 3600.0, floor: float = 60.0, ceiling: float = 365 * _DAY, *, scale: float = 1.0) -> Rule:
    """Nutch with .2 and .2, without the pull, and with a first interval of an hour: a configuration for news."""
    parameters = nutch(first, floor, ceiling, slower=0.2, faster=0.2, pull=0.0, scale=scale).parameters
    return Rule("nutch-22", _nutch_step, 2, parameters)


def _nutch_step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the interval; the seconds from the last observed change to this visit."""
    first, floor, ceiling = parameters[0], parameters[1], parameters[2]
    slower, faster, pull, scale = parameters[3], parameters[4], parameters[5], parameters[6]
    interval, quiet = memory[0], 0.0
    if outcome == 0 or interval <= 0.0:
        interval = first
    elif outcome == 2:
        interval *= 1.0 - faster
    else:
        interval *= 1.0 + slower
        quiet = within(memory[1] + passed(elapsed), 0.0, inf)
    if pull > 0.0:
        interval = max(interval, quiet)
    memory[0] = within(interval, floor, ceiling)
    memory[1] = quiet
    sooner = pull * min(quiet, memory[0])
    return within(within(memory[0] - sooner, floor, ceiling) * scale, 0.0, inf)


def stormcrawler(
    first: float = _DAY,
    floor: float = _HOUR,
    ceiling: float = 14 * _DAY,
    *,
    slower: float = 0.5,
    faster: float = 0.5,
    scale: float = 1.0,
) -> Rule:
    """The interval grows by the share `slower` without a change.

    With a change it loses the share `faster` of its distance to `floor`, which it approaches and never reaches.
    Large rates find the pace of a page in a few visits and then swing around it. The floor of an hour suits a large
    web; news needs less.
    """
    check_bounds(first, floor, ceiling, scale)
    if not (0 < slower <= 1 and 0 < faster <= 1):
        raise ValueError(f"needs rates above 0 and up to 1, not {slower:g} and {faster:g}")
    return Rule("stormcrawler", _stormcrawler_step, 1, (first, floor, ceiling, slower, faster, scale))


def _stormcrawler_step(
    memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int
) -> float:
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


def cho(
    first: float = 3600.0, floor: float = 0.0, ceiling: float = inf, *, price: float = 1800.0, scale: float = 1.0
) -> Rule:
    """Visits by an estimate of the change rate that never forgets.

    The longer a page keeps its pace, the better the estimate, and the slower it notices another pace. `price` (see
    `visit_rate`) adjusts the budget: at 1800, a page that changes once an hour is visited once an hour, slower pages
    several times per change, faster ones less than once. Four times the price gives about half the visits.
    """
    check_bounds(first, floor, ceiling, scale)
    if not 1e-20 <= price <= 1e20:
        raise ValueError(f"needs a price from 1e-20 to 1e20, not {price:g}")
    return Rule("cho", _cho_step, 3, (first, floor, ceiling, price, scale))


def _cho_step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the visits after the first, those without a change, the seconds that they cover."""
    first, floor, ceiling = parameters[0], parameters[1], parameters[2]
    price, scale = parameters[3], parameters[4]
    if outcome == 0:
        memory[0], memory[1], memory[2] = 0.0, 0.0, 0.0
        return within(first * scale, 0.0, inf)
    memory[0] += 1.0
    memory[1] += 2.0 - outcome
    memory[2] += passed(elapsed)
    visits, unchanged, watched = memory[0], min(memory[1], memory[0] - 0.5), memory[2]
    rate = -log((unchanged + 0.5) / (visits + 0.5)) * visits / watched
    return within(within(1.0 / visit_rate(rate, 1.0, price), floor, ceiling) * scale, 0.0, inf)
