"""When pages of the bundled web change.

Every pattern is calibrated so that hourly visits meet a change with the probability `hit_rate`, the D of the paper.
Changes fall on whole seconds, so that Last-Modified is exact.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from enum import StrEnum
from functools import cache
from random import Random
from typing import NamedTuple

from levada.demo.chance import mix

_HOUR = 3600.0
_DAY = 24 * _HOUR


class Pattern(StrEnum):
    STATIC = "static"
    POISSON = "poisson"  # at any time, without memory
    PERIODIC = "periodic"  # by a timetable, a little late or early
    DAILY = "daily"  # as Poisson, but busy by day and nearly silent at night
    BURSTY = "bursty"  # long rests, then several changes within the hour


class Rhythm(NamedTuple):
    pattern: Pattern
    hit_rate: float  # share of hourly visits that meet a change


def _daily_weight(hour_of_day: float) -> float:
    """Activity over the day, mean 1: the most at 14:00, the least at 02:00."""
    return 1.0 + 0.9 * math.cos((hour_of_day - 14.0) * math.pi / 12.0)


@cache
def _daily_rate(hit_percent: int) -> float:
    """Mean changes per hour with which hourly visits hit that often, over a whole day (bisection)."""
    low, high = 0.0, 60.0
    for _ in range(50):
        rate = (low + high) / 2
        hits = sum(1 - math.exp(-rate * _daily_weight(hour + 0.5)) for hour in range(24)) / 24
        low, high = (rate, high) if hits < hit_percent / 100 else (low, rate)
    return rate


def _poisson(chance: Random, rate: float) -> list[float]:
    times: list[float] = []
    at = chance.expovariate(rate)
    while at < 24.0:
        times.append(at)
        at += chance.expovariate(rate)
    return times


def _daily(chance: Random, hit_rate: float) -> list[float]:
    rate = _daily_rate(round(hit_rate * 100))
    # Thinning: draw at the busiest hour's rate, keep each in proportion to its own hour.
    return [at for at in _poisson(chance, rate * 1.9) if chance.random() * 1.9 < _daily_weight(at)]


def _bursty(chance: Random, hit_rate: float) -> list[float]:
    # A burst w hours long touches 1 + w hourly visits; w is 0.5 on average.
    rate = -math.log1p(-hit_rate) / 1.5
    times: list[float] = []
    for start in _poisson(chance, rate):
        width = chance.uniform(0.2, 0.8)
        inside = (chance.uniform(0.0, width) for _ in range(chance.randint(1, 5)))
        times += [start, start + width, *(start + at for at in inside)]
    return times


def _periodic(page_hash: int, hit_rate: float, day: int) -> list[float]:
    period = 1.0 / hit_rate
    phase = period * (page_hash % 9973) / 9973
    first = math.ceil((day * 24.0 - phase) / period)
    last = math.ceil(((day + 1) * 24.0 - phase) / period)
    late = (0.06 * period * (mix(page_hash, step) % 1000) / 1000 for step in range(first, last))
    return [phase + step * period + delay - day * 24.0 for step, delay in zip(range(first, last), late, strict=True)]


def changes_of_day(rhythm: Rhythm, page_hash: int, day: int) -> list[float]:
    """Seconds after the day's start of the changes that begin on it; a few may reach into the next day."""
    chance = Random(mix(page_hash, day))
    match rhythm.pattern:
        case Pattern.STATIC:
            hours: list[float] = []
        case Pattern.POISSON:
            hours = _poisson(chance, -math.log1p(-rhythm.hit_rate))
        case Pattern.PERIODIC:
            hours = _periodic(page_hash, rhythm.hit_rate, day)
        case Pattern.DAILY:
            hours = _daily(chance, rhythm.hit_rate)
        case Pattern.BURSTY:
            hours = _bursty(chance, rhythm.hit_rate)
    return [math.floor(at * _HOUR) + 1.0 for at in hours]


class ChangeTimes:
    """The change times of one page after `origin` (the start of a day), made a day at a time when asked for."""

    __slots__ = ("_days", "_hash", "_origin", "_pending", "_rhythm", "_times")

    def __init__(self, rhythm: Rhythm, page_hash: int, origin: float) -> None:
        self._rhythm = rhythm
        self._hash = page_hash
        self._origin = origin
        self._days = 0
        self._times = array("d")
        self._pending: list[float] = []  # reach beyond the days made so far

    def until(self, t: float) -> array[float]:
        """At least all changes up to and including `t`, in order; later ones may follow."""
        while self._origin + self._days * _DAY <= t:
            self._make_day()
        return self._times

    def _make_day(self) -> None:
        start = self._origin + self._days * _DAY
        made = [start + at for at in changes_of_day(self._rhythm, self._hash, self._days)]
        times = sorted({*self._pending, *made})
        self._days += 1
        # A change exactly at midnight belongs to the day that begins.
        result = bisect_right(times, start + _DAY - 0.5)
        self._times.extend(times[:result])
        self._pending = times[result:]
