"""How many pages, on which sites, and how lively is each?

The counts of the EMACrawler experiment: 1,046 URLs of 23 sites, and how many of each category were static, low,
medium or high in dynamics (data/SOURCE.md). Pages of one site resemble each other: a page's liveliness is half its
site's and half its own; the liveliest of a category are its `high` pages, and so on down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from levada.lab.freshness.world import Floats, Integers
from levada.lab.reference import reference_rows

__all__ = [
    "CLASSES",
    "DAY",
    "HOUR",
    "Bands",
    "Population",
    "class_counts",
    "populate",
    "share_out",
]

HOUR = 3600.0
DAY = 24 * HOUR
CLASSES = ("static", "low", "medium", "high")

_SITE_SHARE = 0.5  # of the variance of liveliness that a page has in common with its site
_REALLY_STATIC = 0.6  # of the static class; the others change once in weeks or months


@dataclass(frozen=True, slots=True)
class Bands:
    """Between which rates (per second) the pages of a class lie.

    `quarter` and `half` are the rates at which hourly visits meet a change one time in four, and in two.
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
    sites: Integers
    classes: Integers  # index into CLASSES
    rates: Floats  # occasions per second
    activity: Floats  # of each site: its part of the liveliness, standard normal


@cache
def class_counts(policy: str = "ema") -> dict[str, tuple[int, ...]]:
    """Pages of each class in each category, as the paper's crawler (or its baseline) met them."""
    column = f"{policy.replace('-', '_')}_urls"
    counts: dict[str, dict[str, int]] = {}
    for row in reference_rows("freshness_dynamics.csv"):
        counts.setdefault(row["category"], {})[row["class"]] = int(row[column])
    return {category: tuple(found[name] for name in CLASSES) for category, found in counts.items()}


def share_out(total: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers in proportion to the weights that add up to the total (largest remainders)."""
    whole = sum(weights)
    shares = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares


def populate(random: np.random.Generator, bands: Bands, pages: int) -> Population:
    """As many pages as wanted, in the proportions of the experiment."""
    rows = reference_rows("freshness_sites.csv")
    sizes = share_out(pages, [int(row["urls"]) for row in rows])
    sites = np.repeat(np.arange(len(rows)), sizes)
    activity = random.standard_normal(len(rows))
    liveliness = np.sqrt(_SITE_SHARE) * activity[sites]
    liveliness += np.sqrt(1 - _SITE_SHARE) * random.standard_normal(pages)
    classes = np.zeros(pages, np.int64)
    rates = np.zeros(pages)
    for category, counts in class_counts().items():
        of_site = np.array([row["category"] == category for row in rows])
        members = np.flatnonzero(of_site[sites])
        members = members[np.argsort(liveliness[members])]
        borders = np.cumsum(share_out(len(members), counts))[:-1]
        for index, part in enumerate(np.split(members, borders)):
            classes[part] = index
            rates[part] = _rates(random, bands, CLASSES[index], len(part))
    return Population(sites, classes, rates, activity)


def _rates(random: np.random.Generator, bands: Bands, name: str, count: int) -> Floats:
    """Log-uniform within the band of the class, in rising order (stratified, so that no seed lacks an end)."""
    low, high = bands.of_class(name)
    places = (np.arange(count) + random.random(count)) / max(count, 1)
    if name != "static":
        return np.asarray(low * (high / low) ** places)
    places = (places - _REALLY_STATIC) / (1 - _REALLY_STATIC)
    return np.where(places < 0, 0.0, low * (high / low) ** np.maximum(places, 0.0))
