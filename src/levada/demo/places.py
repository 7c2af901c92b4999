"""Sites of the bundled web: counts of the EMACrawler experiment, and what a site is made of."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from levada.demo.changes import Rhythm

# The source's names of its five categories, and the word that this package uses.
CATEGORIES = {
    "E-commerce and retail": "shop",
    "Travel and tourism": "travel",
    "Education": "education",
    "Finance": "finance",
    "News and media": "news",
}


class Dynamics(StrEnum):
    """How often a visit meets a change, if visits are an hour apart."""

    STATIC = "static"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class SiteFigures(NamedTuple):
    category: str
    name: str
    pages: int


def _rows(name: str) -> list[dict[str, str]]:
    text = files("levada.demo").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def site_figures() -> tuple[SiteFigures, ...]:
    """The sites, by the label of their name: www.trendyol.com is trendyol."""
    return tuple(
        SiteFigures(CATEGORIES[row["category"]], row["site"].split(".")[1], int(row["urls"]))
        for row in _rows("freshness_sites.csv")
    )


@cache
def class_counts() -> Mapping[str, Mapping[Dynamics, int]]:
    """Pages of each class in each category, as the paper's own crawler met them."""
    counts: dict[str, dict[Dynamics, int]] = {category: {} for category in CATEGORIES.values()}
    for row in _rows("freshness_dynamics.csv"):
        counts[CATEGORIES[row["category"]]][Dynamics(row["class"])] = int(row["ema_urls"])
    return counts


def share_out(total: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers in proportion to the weights that add up to the total (largest remainders)."""
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    shares = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares


class PageRole(StrEnum):
    FRONT = "front"
    SECTION = "section"
    ITEM = "item"


class ValidatorKind(StrEnum):
    """What a site sends for conditional requests."""

    BOTH = "both"
    ETAG = "etag"
    MODIFIED = "modified"
    NONE = "none"


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    number: int  # in the world
    site: DemoSite
    path: str
    role: PageRole
    language: str
    section: int  # of its site; a front page has -1
    dynamics: Dynamics
    rhythm: Rhythm
    hash: int
    only_in_sitemap: bool = False


@dataclass(slots=True, eq=False)
class DemoSite:
    """One host: the front page, then sections, then items."""

    host: str
    label: str
    category: str
    language: str
    validators: ValidatorKind = ValidatorKind.BOTH
    honest_lastmod: bool = True
    crawl_delay: float | None = None
    section_names: list[str] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    by_path: dict[str, Page] = field(default_factory=dict)

    @property
    def front(self) -> Page:
        return self.pages[0]

    @property
    def sections(self) -> Sequence[Page]:
        return self.pages[1 : 1 + len(self.section_names)]

    @property
    def items(self) -> Sequence[Page]:
        return self.pages[1 + len(self.section_names) :]

    def listed_in(self, section: int) -> list[Page]:
        """The items that a section links to; those only in the sitemap are left out."""
        count = len(self.section_names)
        return [page for page in self.items[section::count] if not page.only_in_sitemap]
