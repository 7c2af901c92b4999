"""Worlds: simulated pages that change at known times, by process, population and seed.

The population has the counts of the EMACrawler experiment: 1,046 URLs of 23 sites, and how many of each category
were static, low, medium or high in dynamics (data/SOURCE.md). Pages of one site resemble each other: the activity
of a page is half its site's and half its own. The most active of a category are its `high` pages, and so on down.

An occasion is one change, except in the bursty process, where it is a burst of several. The rates of a class are
such that hourly visits would put the page into that class, in every process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from levada.core.errors import UsageError
from levada.lab.reference import reference_rows

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LabWorld:
    """Pages and their changes from 0 to `horizon` seconds; nothing counts after the end of a page."""

    name: str
    horizon: float
    offsets: Integers  # the changes of page i are times[offsets[i]:offsets[i + 1]]
    times: Floats  # strictly increasing within a page, after its start and not after its end
    begins: Floats  # start of a page, and its first visit under every policy
    ends: Floats  # end of a page; the horizon if it stays
    sites: Integers
    rates: Floats  # [page, segment]: actual mean changes per second in equal segments of the horizon

    @property
    def pages(self) -> int:
        return len(self.begins)

    @property
    def events(self) -> tuple[Integers, Floats, Floats, Floats, float]:
        """The first arguments of the compiled loops."""
        return self.offsets, self.times, self.begins, self.ends, self.horizon

    def changes_of(self, page: int) -> Floats:
        return self.times[self.offsets[page] : self.offsets[page + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """Every fetch of a policy, in order of time, first visits included."""

    page: Integers
    at: Floats

    def __len__(self) -> int:
        return len(self.at)


def build_world(
    name: str,
    horizon: float,
    changes: tuple[Integers, Floats],
    sites: Integers,
    *,
    begins: Floats | None = None,
    ends: Floats | None = None,
    rates: Floats | None = None,
) -> LabWorld:
    """A world from (page, time) pairs in any order, without changes outside a page's life and second changes at the
    same time. Without `rates` they are the observed ones: changes per second of life."""
    n = len(sites)
    begins = np.zeros(n) if begins is None else begins
    ends = np.full(n, horizon) if ends is None else np.minimum(ends, horizon)
    page, at = changes
    alive = (at > begins[page]) & (at <= ends[page])
    page, at = page[alive], at[alive]
    order = np.lexsort((at, page))
    page, at = page[order], at[order]
    if len(at):
        again = (page[1:] == page[:-1]) & (at[1:] == at[:-1])
        kept = np.concatenate(([True], ~again))
        page, at = page[kept], at[kept]
    counts = np.bincount(page, minlength=n)
    if rates is None:
        rates = (counts / np.maximum(ends - begins, 1.0)).reshape(n, 1)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return LabWorld(name, horizon, offsets, at, begins, ends, sites.astype(np.int64), rates)


HOUR = 3600.0
DAY = 24 * HOUR
CLASSES = ("static", "low", "medium", "high")
_SITE_SHARE = 0.5  # of the variance of activity that a page shares with its site
_REALLY_STATIC = 0.6  # of the static class; the others change once in weeks or months


@dataclass(frozen=True, slots=True)
class Bands:
    """Limits of the rates (per second) of each class.

    At the rates `quarter` and `half`, hourly visits find a change one time in four, and in two.
    """

    quarter: float
    half: float
    most: float = 10 / HOUR
    least: float = 1 / DAY
    slow: tuple[float, float] = (1 / (90 * DAY), 1 / (7 * DAY))

    def of_class(self, name: str) -> tuple[float, float]:
        bands = {
            "static": self.slow,
            "low": (self.least, self.quarter),
            "medium": (self.quarter, self.half),
            "high": (self.half, self.most),
        }
        return bands[name]


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The sites, classes and change rates of the pages of a world."""

    sites: Integers
    classes: Integers  # index into CLASSES
    rates: Floats  # occasions per second
    activity: Floats  # of each site, standard normal


@cache
def class_counts(policy: str = "ema") -> dict[str, tuple[int, ...]]:
    """Pages of each class in each category, as the paper's crawler (or its baseline) found them."""
    column = f"{policy.replace('-', '_')}_urls"
    counts: dict[str, dict[str, int]] = {}
    for row in reference_rows("freshness_dynamics.csv"):
        counts.setdefault(row["category"], {})[row["class"]] = int(row[column])
    return {category: tuple(found[name] for name in CLASSES) for category, found in counts.items()}


def share_out(total: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers in proportion to the weights, with this sum (largest remainders)."""
    whole = sum(weights)
    shares = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares


def populate(random: np.random.Generator, bands: Bands, pages: int) -> Population:
    """This many pages, in the proportions of the experiment."""
    rows = reference_rows("freshness_sites.csv")
    sizes = share_out(pages, [int(row["urls"]) for row in rows])
    sites = np.repeat(np.arange(len(rows)), sizes)
    activity = random.standard_normal(len(rows))
    activity_of_page = np.sqrt(_SITE_SHARE) * activity[sites]
    activity_of_page += np.sqrt(1 - _SITE_SHARE) * random.standard_normal(pages)
    classes = np.zeros(pages, np.int64)
    rates = np.zeros(pages)
    for category, counts in class_counts().items():
        of_site = np.array([row["category"] == category for row in rows])
        members = np.flatnonzero(of_site[sites])
        members = members[np.argsort(activity_of_page[members])]
        borders = np.cumsum(share_out(len(members), counts))[:-1]
        for index, part in enumerate(np.split(members, borders)):
            classes[part] = index
            rates[part] = _rates(random, bands, CLASSES[index], len(part))
    return Population(sites, classes, rates, activity)


def _rates(random: np.random.Generator, bands: Bands, name: str, count: int) -> Floats:
    """Log-uniform within the limits of the class, in rising order (stratified, so that every seed has both
    ends)."""
    low, high = bands.of_class(name)
    places = (np.arange(count) + random.random(count)) / max(count, 1)
    if name != "static":
        return np.asarray(low * (high / low) ** places)
    places = (places - _REALLY_STATIC) / (1 - _REALLY_STATIC)
    return np.where(places < 0, 0.0, low * (high / low) ** np.maximum(places, 0.0))


Changes = tuple[Integers, Floats]  # page and time of each change, in any order
_JITTER = 0.05  # of the period, standard deviation
_BURST_WIDTH = (5 * 60.0, 60 * 60.0)
_BURST_SIZE = (2, 8)
BURST_CHANGES = sum(_BURST_SIZE) / 2  # on average
# Activity over the day from the busiest hour on, mean 1: less in the evening, almost none at night, steep in the
# morning.
_SHAPE = (10, 10, 9, 9, 8, 7, 6, 5, 4, 3, 1.5, 0.7, 0.3, 0.2, 0.2, 0.2, 0.3, 0.6, 2, 4, 6, 8, 9, 10)
DAY_PROFILE = np.array(_SHAPE) / np.mean(_SHAPE)
_JUMPS_PER_DAY = 0.2
_LARGEST_JUMP = 20.0
_DIES = 0.15  # of the jumps
_WAKES = 0.03  # of the inactive pages, per day


def _daily_rate(wanted: float) -> float:
    """The rate at which this share of hourly visits finds a change."""
    low, high = 0.0, 60.0 / HOUR
    for _ in range(60):
        middle = (low + high) / 2
        hits = float(np.mean(1 - np.exp(-middle * HOUR * DAY_PROFILE)))
        low, high = (middle, high) if hits < wanted else (low, middle)
    return low


_TOUCHED = 1 + sum(_BURST_WIDTH) / 2 / HOUR  # hourly visits that find a change of a burst
POISSON_BANDS = Bands(-math.log(0.75) / HOUR, -math.log(0.5) / HOUR)
PERIODIC_BANDS = Bands(0.25 / HOUR, 0.5 / HOUR)
DAILY_BANDS = Bands(_daily_rate(0.25), _daily_rate(0.5))
BURSTY_BANDS = Bands(POISSON_BANDS.quarter / _TOUCHED, POISSON_BANDS.half / _TOUCHED, most=10 / HOUR / BURST_CHANGES)


def poisson(random: np.random.Generator, rates: Floats, horizon: float) -> Changes:
    """Changes at any time, without memory."""
    counts = random.poisson(rates * horizon)
    page = np.repeat(np.arange(len(rates)), counts)
    return page, random.random(len(page)) * horizon


def periodic(random: np.random.Generator, rates: Floats, horizon: float) -> Changes:
    """Changes by a timetable with its own phase, a little late or early."""
    counts = np.ceil(rates * horizon).astype(np.int64) + 2
    counts[rates == 0] = 0
    page = np.repeat(np.arange(len(rates)), counts)
    step = np.arange(len(page)) - np.repeat(np.cumsum(counts) - counts, counts) - 1.0
    phase = random.random(len(rates))[page]
    jitter = _JITTER * random.standard_normal(len(page))
    return page, (step + phase + jitter) / rates[page]


def daily(random: np.random.Generator, population: Population, horizon: float) -> Changes:
    """As `poisson`, but busy by day and almost silent at night; each site has its own busiest hour."""
    busiest = random.integers(24, size=len(population.activity))
    peak = DAY_PROFILE.max()
    page, at = poisson(random, population.rates * peak, horizon)
    hour = (at // HOUR).astype(np.int64) - busiest[population.sites[page]]
    # Thinning: changes are drawn at the busiest hour's rate and kept in proportion to their own hour's.
    kept = random.random(len(at)) * peak < DAY_PROFILE[hour % 24]
    return page[kept], at[kept]


def bursty(random: np.random.Generator, rates: Floats, horizon: float) -> Changes:
    """Long pauses, then several changes within minutes to an hour."""
    page, start = poisson(random, rates, horizon)
    size = random.integers(_BURST_SIZE[0], _BURST_SIZE[1] + 1, len(page))
    width = random.uniform(*_BURST_WIDTH, len(page))
    burst = np.repeat(np.arange(len(page)), size)
    return page[burst], start[burst] + random.random(len(burst)) * width[burst]


def drifting(
    random: np.random.Generator, population: Population, bands: Bands, horizon: float
) -> tuple[Changes, Floats]:
    """As `poisson`, but on some days a page's rate jumps: up or down by a factor of up to 20, to 0, or from 0 to
    that of any page that changes. Also returns the rates, one column per day."""
    days = max(1, math.ceil(horizon / DAY))
    rates = np.empty((len(population.rates), days))
    rates[:, 0] = population.rates
    active = population.rates[population.rates >= bands.least]
    for day in range(1, days):
        rates[:, day] = _next_day(random, rates[:, day - 1], active, bands)
    length = horizon / days
    made = [poisson(random, rates[:, day], length) for day in range(days)]
    page = np.concatenate([each for each, _ in made])
    at = np.concatenate([times + day * length for day, (_, times) in enumerate(made)])
    return (page, at), rates


def _next_day(random: np.random.Generator, today: Floats, active: Floats, bands: Bands) -> Floats:
    n = len(today)
    at_rest = today < bands.least / _LARGEST_JUMP
    jumps = ~at_rest & (random.random(n) < _JUMPS_PER_DAY)
    dies = jumps & (random.random(n) < _DIES)
    wakes = at_rest & (random.random(n) < _WAKES)
    factor = _LARGEST_JUMP ** random.uniform(-1, 1, n)
    tomorrow = np.where(jumps, np.clip(today * factor, bands.slow[0], bands.most), today)
    tomorrow = np.where(dies, 0.0, tomorrow)
    woken = random.choice(active, n) if len(active) else np.zeros(n)
    return np.where(wakes, woken, tomorrow)


# Of a horizon and a number of pages: changes, sites and rates.
Maker = Callable[[np.random.Generator, float, int], tuple[Changes, Integers, Floats]]
_WEEK = 7 * DAY
# The slow world: the least active tenth never changes; most pages change once in a week to a month.
_SLOW_STATIC, _SLOW_MOST = 0.1, 0.9
_WEEKLY_TO_MONTHLY = (1 / (30 * DAY), 1 / (7 * DAY))


def make_world(name: str, seed: int, pages: int = 1046) -> LabWorld:
    """The world of this name, the same for the same seed."""
    if name not in SYNTHETIC_WORLDS:
        raise UsageError(f"no world is called {name!r}; there are {', '.join(SYNTHETIC_WORLDS)}")
    if pages < 1:
        raise UsageError(f"a world needs at least one page, not {pages}")
    maker, horizon = SYNTHETIC_WORLDS[name]
    changes, sites, rates = maker(np.random.default_rng([crc32(name.encode()), seed]), horizon, pages)
    return build_world(name, horizon, changes, sites, rates=rates)


def _stationary(
    bands: Bands,
    changes: Callable[[np.random.Generator, Population, float], Changes],
    per_occasion: float = 1.0,
) -> Maker:
    """Worlds whose rates never change, of one process."""

    def make(random: np.random.Generator, horizon: float, pages: int) -> tuple[Changes, Integers, Floats]:
        population = populate(random, bands, pages)
        rates = (population.rates * per_occasion).reshape(-1, 1)
        return changes(random, population, horizon), population.sites, rates

    return make


def _drifting(random: np.random.Generator, horizon: float, pages: int) -> tuple[Changes, Integers, Floats]:
    population = populate(random, POISSON_BANDS, pages)
    changes, rates = drifting(random, population, POISSON_BANDS, horizon)
    return changes, population.sites, rates


def _slow(random: np.random.Generator, horizon: float, pages: int) -> tuple[Changes, Integers, Floats]:
    population = populate(random, POISSON_BANDS, pages)
    low, high = _WEEKLY_TO_MONTHLY
    place = (np.argsort(np.argsort(population.rates, kind="stable")) + random.random(pages)) / pages
    slow = low * (high / low) ** random.random(pages)
    rates = np.where(place < _SLOW_STATIC, 0.0, np.where(place < _SLOW_MOST, slow, population.rates))
    return poisson(random, rates, horizon), population.sites, rates.reshape(-1, 1)


_poisson = _stationary(POISSON_BANDS, lambda random, population, horizon: poisson(random, population.rates, horizon))
_periodic = _stationary(PERIODIC_BANDS, lambda random, population, horizon: periodic(random, population.rates, horizon))
_bursty = _stationary(
    BURSTY_BANDS, lambda random, population, horizon: bursty(random, population.rates, horizon), BURST_CHANGES
)

SYNTHETIC_WORLDS: dict[str, tuple[Maker, float]] = {
    "poisson-12h": (_poisson, 12 * HOUR),
    "poisson-7d": (_poisson, _WEEK),
    "periodic-7d": (_periodic, _WEEK),
    "daily-7d": (_stationary(DAILY_BANDS, daily), _WEEK),
    "bursty-7d": (_bursty, _WEEK),
    "drifting-7d": (_drifting, _WEEK),
    "slow-7d": (_slow, _WEEK),
}
