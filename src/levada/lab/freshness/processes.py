"""Which worlds are there, and how is one made from its name and a seed?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from zlib import crc32

import numpy as np

from levada.errors import UsageError
from levada.lab.freshness import patterns
from levada.lab.freshness.population import DAY, HOUR, Population, populate
from levada.lab.freshness.world import World, build_world

__all__ = ["MADE_WORLDS", "make_world"]

Maker = Callable[[str, np.random.Generator, float, int], World]
_WEEK = 7 * DAY

# The slow world: of its pages, by liveliness, so many never change; most change once in a week to a month.
_SLOW_STATIC, _SLOW_MOST = 0.1, 0.9
_WEEKLY_TO_MONTHLY = (1 / (30 * DAY), 1 / (7 * DAY))


def make_world(name: str, seed: int, pages: int = 1046) -> World:
    """The world of that name; the same for the same seed."""
    if name not in MADE_WORLDS:
        raise UsageError(f"no world is called {name!r}; there are {', '.join(MADE_WORLDS)}")
    if pages < 1:
        raise UsageError(f"a world needs at least one page, not {pages}")
    maker, horizon = MADE_WORLDS[name]
    return maker(name, np.random.default_rng([crc32(name.encode()), seed]), horizon, pages)


def _poisson(name: str, random: np.random.Generator, horizon: float, pages: int) -> World:
    people = populate(random, patterns.poisson_bands(), pages)
    return _stationary(name, horizon, people, patterns.poisson(random, people.rates, horizon))


def _periodic(name: str, random: np.random.Generator, horizon: float, pages: int) -> World:
    people = populate(random, patterns.periodic_bands(), pages)
    return _stationary(name, horizon, people, patterns.periodic(random, people.rates, horizon))


def _daily(name: str, random: np.random.Generator, horizon: float, pages: int) -> World:
    people = populate(random, patterns.daily_bands(), pages)
    return _stationary(name, horizon, people, patterns.daily(random, people, horizon))


def _bursty(name: str, random: np.random.Generator, horizon: float, pages: int) -> World:
    people = populate(random, patterns.bursty_bands(), pages)
    changes = patterns.bursty(random, people.rates, horizon)
    return _stationary(name, horizon, people, changes, patterns.BURST_CHANGES)


def _drifting(name: str, random: np.random.Generator, horizon: float, pages: int) -> World:
    bands = patterns.poisson_bands()
    people = populate(random, bands, pages)
    changes, rates = patterns.drifting(random, people, bands, horizon)
    return build_world(name, horizon, changes, people.sites, rates=rates)


def _slow(name: str, random: np.random.Generator, horizon: float, pages: int) -> World:
    people = populate(random, patterns.poisson_bands(), pages)
    low, high = _WEEKLY_TO_MONTHLY
    place = (np.argsort(np.argsort(people.rates, kind="stable")) + random.random(pages)) / pages
    slow = low * (high / low) ** random.random(pages)
    rates = np.where(place < _SLOW_STATIC, 0.0, np.where(place < _SLOW_MOST, slow, people.rates))
    people = replace(people, rates=rates)
    return _stationary(name, horizon, people, patterns.poisson(random, rates, horizon))


def _stationary(
    name: str, horizon: float, people: Population, changes: patterns.Changes, per_occasion: float = 1.0
) -> World:
    rates = (people.rates * per_occasion).reshape(-1, 1)
    return build_world(name, horizon, changes, people.sites, rates=rates)


MADE_WORLDS: dict[str, tuple[Maker, float]] = {
    "poisson-12h": (_poisson, 12 * HOUR),
    "poisson-7d": (_poisson, _WEEK),
    "periodic-7d": (_periodic, _WEEK),
    "daily-7d": (_daily, _WEEK),
    "bursty-7d": (_bursty, _WEEK),
    "drifting-7d": (_drifting, _WEEK),
    "slow-7d": (_slow, _WEEK),
}
