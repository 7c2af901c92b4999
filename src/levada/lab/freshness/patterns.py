"""When do the pages of a made world change? One function per process, each over a whole population at once.

An occasion is one change, but for the bursty process, where it is a burst of several. The rates of a class are
such that hourly visits would put the page into that class, whatever the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from levada.lab.freshness.population import DAY, HOUR, Bands, Population
from levada.lab.freshness.world import Floats, Integers

__all__ = [
    "BURST_CHANGES",
    "DAY_PROFILE",
    "Changes",
    "bursty",
    "bursty_bands",
    "daily",
    "daily_bands",
    "drifting",
    "periodic",
    "periodic_bands",
    "poisson",
    "poisson_bands",
]

Changes = tuple[Integers, Floats]  # page and time of each change, in any order

_JITTER = 0.05  # of the period, standard deviation
_BURST_WIDTH = (5 * 60.0, 60 * 60.0)
_BURST_SIZE = (2, 8)
BURST_CHANGES = sum(_BURST_SIZE) / 2  # on average

# Activity over the day from the busiest hour on, mean 1: an evening that thins out, a night with next to nothing,
# a steep morning.
_SHAPE = (10, 10, 9, 9, 8, 7, 6, 5, 4, 3, 1.5, 0.7, 0.3, 0.2, 0.2, 0.2, 0.3, 0.6, 2, 4, 6, 8, 9, 10)
DAY_PROFILE = np.array(_SHAPE) / np.mean(_SHAPE)

_JUMPS_PER_DAY = 0.2
_LARGEST_JUMP = 20.0
_DIES = 0.15  # of the jumps
_WAKES = 0.03  # of the pages at rest, per day


def poisson_bands() -> Bands:
    return Bands(-math.log(0.75) / HOUR, -math.log(0.5) / HOUR)


def periodic_bands() -> Bands:
    return Bands(0.25 / HOUR, 0.5 / HOUR)


def daily_bands() -> Bands:
    def hits(rate: float) -> float:
        return float(np.mean(1 - np.exp(-rate * HOUR * DAY_PROFILE)))

    return Bands(_rate_at(hits, 0.25), _rate_at(hits, 0.5))


def bursty_bands() -> Bands:
    touched = 1 + sum(_BURST_WIDTH) / 2 / HOUR  # hourly visits that a burst shows itself to
    return Bands(-math.log(0.75) / HOUR / touched, -math.log(0.5) / HOUR / touched, most=10 / HOUR / BURST_CHANGES)


def _rate_at(hits: Callable[[float], float], wanted: float) -> float:
    low, high = 0.0, 60.0 / HOUR
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if hits(middle) < wanted else (low, middle)
    return low


def poisson(random: np.random.Generator, rates: Floats, horizon: float) -> Changes:
    """At any time, without memory."""
    counts = random.poisson(rates * horizon)
    page = np.repeat(np.arange(len(rates)), counts)
    return page, random.random(len(page)) * horizon


def periodic(random: np.random.Generator, rates: Floats, horizon: float) -> Changes:
    """By a timetable of its own phase, a little late or early."""
    counts = np.ceil(rates * horizon).astype(np.int64) + 2
    counts[rates == 0] = 0
    page = np.repeat(np.arange(len(rates)), counts)
    step = np.arange(len(page)) - np.repeat(np.cumsum(counts) - counts, counts) - 1.0
    phase = random.random(len(rates))[page]
    jitter = _JITTER * random.standard_normal(len(page))
    return page, (step + phase + jitter) / rates[page]


def daily(random: np.random.Generator, people: Population, horizon: float) -> Changes:
    """As Poisson, but busy by day and nearly silent at night; each site has its own busiest hour."""
    busiest = random.integers(24, size=len(people.activity))
    peak = DAY_PROFILE.max()
    page, at = poisson(random, people.rates * peak, horizon)
    hour = (at // HOUR).astype(np.int64) - busiest[people.sites[page]]
    # Thinning: drawn at the busiest hour's rate, each is kept in proportion to its own hour's.
    kept = random.random(len(at)) * peak < DAY_PROFILE[hour % 24]
    return page[kept], at[kept]


def bursty(random: np.random.Generator, rates: Floats, horizon: float) -> Changes:
    """Long rests, then several changes within minutes to an hour."""
    page, start = poisson(random, rates, horizon)
    size = random.integers(_BURST_SIZE[0], _BURST_SIZE[1] + 1, len(page))
    width = random.uniform(*_BURST_WIDTH, len(page))
    burst = np.repeat(np.arange(len(page)), size)
    return page[burst], start[burst] + random.random(len(burst)) * width[burst]


def drifting(
    random: np.random.Generator, people: Population, bands: Bands, horizon: float
) -> tuple[Changes, Floats]:
    """As Poisson, but on some days a page's rate jumps: up or down by a factor of up to 20, to nothing, or from
    nothing to that of any page that changes. Also returns the rates, one column per day."""
    days = max(1, math.ceil(horizon / DAY))
    rates = np.empty((len(people.rates), days))
    rates[:, 0] = people.rates
    lively = people.rates[people.rates >= bands.least]
    for day in range(1, days):
        rates[:, day] = _next_day(random, rates[:, day - 1], lively, bands)
    length = horizon / days
    made = [poisson(random, rates[:, day], length) for day in range(days)]
    page = np.concatenate([each for each, _ in made])
    at = np.concatenate([times + day * length for day, (_, times) in enumerate(made)])
    return (page, at), rates


def _next_day(random: np.random.Generator, today: Floats, lively: Floats, bands: Bands) -> Floats:
    n = len(today)
    at_rest = today < bands.least / _LARGEST_JUMP
    jumps = ~at_rest & (random.random(n) < _JUMPS_PER_DAY)
    dies = jumps & (random.random(n) < _DIES)
    wakes = at_rest & (random.random(n) < _WAKES)
    factor = _LARGEST_JUMP ** random.uniform(-1, 1, n)
    tomorrow = np.where(jumps, np.clip(today * factor, bands.slow[0], bands.most), today)
    tomorrow = np.where(dies, 0.0, tomorrow)
    woken = random.choice(lively, n) if len(lively) else np.zeros(n)
    return np.where(wakes, woken, tomorrow)
