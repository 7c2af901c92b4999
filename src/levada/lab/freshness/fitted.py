"""What would the paper's twelve hours have been like? A world fitted to its class counts and its hourly table.

The paper's pages were stored before its first hour, spread over most of an hour, and its own trace begins at one in
the morning: so first visits are spread likewise, the hours are counted from one hour on, and changes grow more
frequent towards noon. The bands were fitted so that the paper's rule meets about as many pages of each class, and
about as many changes per hour, as the paper says.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np

from levada.lab.freshness.patterns import poisson
from levada.lab.freshness.population import CLASSES, HOUR, Bands, populate
from levada.lab.freshness.world import Booleans, Integers, Visits, World, build_world

__all__ = ["FIRST_HOUR", "HOURS", "classes_met", "fitted_world"]

HOURS = 12
FIRST_HOUR = HOUR  # where the first of them begins

_PAGES = 1046
_SPREAD = 3000.0  # seconds over which first visits are spread
_BANDS = Bands(quarter=0.22 / HOUR, half=0.4 / HOUR, most=6 / HOUR, least=1 / 12 / HOUR)
_RISE = 0.55  # activity grows from 1 minus this to 1 plus this


def fitted_world(seed: int) -> World:
    random = np.random.default_rng([crc32(b"fitted"), seed])
    horizon = FIRST_HOUR + HOURS * HOUR
    people = populate(random, _BANDS, _PAGES)
    rates = np.where(people.classes == CLASSES.index("static"), 0.0, people.rates)
    page, at = poisson(random, rates * (1 + _RISE), horizon)
    kept = random.random(len(at)) * (1 + _RISE) < 1 - _RISE + 2 * _RISE * at / horizon
    return build_world(
        "fitted-12h",
        horizon,
        (page[kept], at[kept]),
        people.sites,
        begins=random.random(_PAGES) * _SPREAD,
        rates=rates.reshape(-1, 1),
    )


def classes_met(world: World, visits: Visits, met: Booleans) -> Integers:
    """The class of each page by its dynamics: visits that met a change / visits, the first visit aside."""
    counted = visits.at >= FIRST_HOUR
    visited = np.bincount(visits.page[counted], minlength=world.pages)
    changed = np.bincount(visits.page[counted & met], minlength=world.pages)
    dynamics = changed / np.maximum(visited, 1)
    return np.where(changed == 0, 0, np.where(dynamics < 0.25, 1, np.where(dynamics <= 0.5, 2, 3)))
