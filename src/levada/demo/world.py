"""World of the bundled web, built from its seed: sites, pages, links and versions.

A `DemoWorld` follows from its seed alone. It has the sites, page counts and change classes of the EMACrawler experiment
(`site_figures`), or the same in proportion for any other number of pages. Front and section pages have change processes
of their own, like every other page: what they list is fixed, what they say about it changes. So all that is
true of a page is one list of change times, and version v is on show from its (v-1)th change on.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import cycle, islice
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from levada.demo.chance import hash_text, mix
from levada.demo.changes import ChangeTimes, Pattern, Rhythm
from levada.demo.http import address
from levada.demo.prose import headline, slug, words_of


class Dynamics(StrEnum):
    """How often a visit meets a change, if visits are an hour apart."""

    STATIC = "static"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ValidatorKind(StrEnum):
    """What a site sends for conditional requests."""

    BOTH = "both"
    ETAG = "etag"
    MODIFIED = "modified"
    NONE = "none"


class SiteTraits(msgspec.Struct, frozen=True):
    languages: tuple[str, ...] = ("tr",)  # sections take these in turn
    validators: ValidatorKind = ValidatorKind.BOTH
    honest_lastmod: bool = True
    crawl_delay: float | None = None


class _Design(msgspec.Struct, frozen=True):
    """The data file of the sites."""

    categories: dict[str, str]
    patterns: dict[str, tuple[Pattern, ...]]
    hit_rates: dict[Dynamics, tuple[float, float]]
    sites: dict[str, SiteTraits]


class SiteFigures(NamedTuple):
    category: str
    name: str
    pages: int
    traits: SiteTraits


def _text(name: str) -> str:
    return files("levada.demo").joinpath("data", name).read_text(encoding="utf-8")


_DESIGN = msgspec.toml.decode(_text("sites.toml"), type=_Design)
CATEGORIES = _DESIGN.categories


@cache
def site_figures() -> tuple[SiteFigures, ...]:
    """The sites, by the label of their name: www.trendyol.com is trendyol."""
    figures = []
    for row in csv.DictReader(_text("freshness_sites.csv").splitlines()):
        name = row["site"].split(".")[1]
        traits = _DESIGN.sites.get(name, SiteTraits())
        figures.append(SiteFigures(CATEGORIES[row["category"]], name, int(row["urls"]), traits))
    return tuple(figures)


@cache
def class_counts() -> Mapping[str, Mapping[Dynamics, int]]:
    """Pages of each class in each category, as the paper's own crawler met them."""
    counts: dict[str, dict[Dynamics, int]] = {category: {} for category in CATEGORIES.values()}
    for row in csv.DictReader(_text("freshness_dynamics.csv").splitlines()):
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
    traits: SiteTraits
    section_names: list[str]
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


# A front page is likelier to be lively than a section, and that likelier than an item.
_LIVELY_HEAD_START = {PageRole.FRONT: 0.0, PageRole.SECTION: 0.4, PageRole.ITEM: 0.6}


def build_sites(seed: int, pages: int | None) -> list[DemoSite]:
    """All sites with their pages; a site that gets no page in a small world is left out."""
    figures = site_figures()
    weights = [site.pages for site in figures]
    if pages is not None and pages < 1:
        raise ValueError(f"a web needs at least one page, not {pages}")
    counts = weights if pages is None else _spread(pages, weights)
    chosen = [(site, count) for site, count in zip(figures, counts, strict=True) if count]
    classes = _deal_classes(seed, chosen)
    sites: list[DemoSite] = []
    number = 0
    for site, count in chosen:
        sites.append(_build_site(seed, site, number, classes[site.name]))
        number += count
    return sites


def _spread(pages: int, weights: list[int]) -> list[int]:
    """In proportion, but every site gets its front page before any gets a second one."""
    if pages <= len(weights):
        return [1] * pages + [0] * (len(weights) - pages)
    return [1 + share for share in share_out(pages - len(weights), [weight - 1 for weight in weights])]


def _section_count(site: SiteFigures, pages: int) -> int:
    """A handful for the sites as they were watched; about as many as items in each once sites grow large."""
    if pages < 4:
        return 0 if pages < 3 else 1
    named = len(words_of(site.traits.languages[0], site.category).sections)
    return max(min(named, pages // 8 + 1), math.isqrt(pages) if pages > 100 else 1)


def _role(index: int, sections: int) -> PageRole:
    if index == 0:
        return PageRole.FRONT
    return PageRole.SECTION if index <= sections else PageRole.ITEM


def _deal_classes(seed: int, chosen: list[tuple[SiteFigures, int]]) -> dict[str, list[Dynamics]]:
    """A class for each page of each site, so that every category has exactly the source's shares."""
    dealt: dict[str, list[Dynamics]] = {site.name: [Dynamics.STATIC] * count for site, count in chosen}
    for category, counts in class_counts().items():
        chance = Random(hash_text(f"classes/{category}", seed))
        places = [
            (_LIVELY_HEAD_START[_role(i, _section_count(site, count))] + chance.random(), site.name, i)
            for site, count in chosen
            if site.category == category
            for i in range(count)
        ]
        places.sort()
        order = (Dynamics.HIGH, Dynamics.MEDIUM, Dynamics.LOW, Dynamics.STATIC)
        shares = share_out(len(places), [counts[dynamics] for dynamics in order])
        classes = [dynamics for dynamics, share in zip(order, shares, strict=True) for _ in range(share)]
        for (_, name, i), dynamics in zip(places, classes, strict=True):
            dealt[name][i] = dynamics
    return dealt


def _rhythm(category: str, dynamics: Dynamics, page_hash: int) -> Rhythm:
    if dynamics is Dynamics.STATIC:
        return Rhythm(Pattern.STATIC, 0.0)
    low, high = _DESIGN.hit_rates[dynamics]
    patterns = _DESIGN.patterns[category]
    share = (mix(page_hash, 1) % 1000) / 1000
    return Rhythm(patterns[mix(page_hash, 2) % len(patterns)], round(low + (high - low) * share, 2))


def _build_site(seed: int, figures: SiteFigures, first_number: int, classes: list[Dynamics]) -> DemoSite:
    name, category, traits = figures.name, figures.category, figures.traits
    sections = _section_count(figures, len(classes))
    spoken = list(islice(cycle(traits.languages), sections))
    named = [_section_name(category, spoken, i) for i in range(sections)]
    site = DemoSite(f"{name}.localhost", name, category, traits.languages[0], traits, named)
    for i, dynamics in enumerate(classes):
        page = _build_page(site, spoken, i, first_number + i, dynamics, hash_text(f"{name}/{i}", seed))
        site.pages.append(page)
        site.by_path[page.path] = page
    return site


def _section_name(category: str, spoken: list[str], section: int) -> str:
    """The next name in the section's language; numbered once the names have run out."""
    names = words_of(spoken[section], category).sections
    turn, index = divmod(spoken[:section].count(spoken[section]), len(names))
    return f"{names[index]} {turn + 1}" if turn else names[index]


def _build_page(site: DemoSite, spoken: list[str], index: int, number: int, dynamics: Dynamics, page_hash: int) -> Page:
    role = _role(index, len(spoken))
    section = {PageRole.FRONT: -1, PageRole.SECTION: index - 1}.get(role, (index - 1) % len(spoken) if spoken else -1)
    language = spoken[section] if section >= 0 else site.language
    return Page(
        number=number,
        site=site,
        path=_path(site, role, section, index, language, page_hash),
        role=role,
        language=language,
        section=section,
        dynamics=dynamics,
        rhythm=_rhythm(site.category, dynamics, page_hash),
        hash=page_hash,
        only_in_sitemap=role is PageRole.ITEM and index % 23 == 22,
    )


def _path(site: DemoSite, role: PageRole, section: int, index: int, language: str, page_hash: int) -> str:
    if role is PageRole.FRONT:
        return "/"
    folder = slug(site.section_names[section]) if section >= 0 else "sayfa"
    if role is PageRole.SECTION:
        return f"/{folder}-{section + 1}/"
    return f"/{folder}-{section + 1}/{slug(headline(language, site.category, page_hash, 0))}-{index}"


ORIGIN = 1_767_571_200.0  # Monday, 5 January 2026, 00:00 UTC: when every page shows its version 1
DEFAULT_PAGE_BYTES = 6_000


class DemoWorld:
    """The sites, their pages, and every change."""

    def __init__(self, seed: int, sites: Sequence[DemoSite], page_bytes: int = DEFAULT_PAGE_BYTES) -> None:
        self.seed = seed
        self.sites = tuple(sites)
        self.page_bytes = page_bytes
        self.origin = ORIGIN
        self.pages = tuple(page for site in self.sites for page in site.pages)
        self.by_host = {site.host: site for site in self.sites}
        self._changes: dict[int, ChangeTimes] = {}

    @staticmethod
    def build(seed: int = 1, pages: int | None = None, *, page_bytes: int = DEFAULT_PAGE_BYTES) -> DemoWorld:
        """The world of this seed, with as many pages as the experiment had, or with `pages`."""
        return DemoWorld(seed, build_sites(seed, pages), page_bytes)

    def version_at(self, page: Page, t: float) -> int:
        return 1 + bisect_right(self.change_times(page, t), t)

    def changes_between(self, page: Page, t0: float, t1: float) -> list[float]:
        """Changes after `t0`, up to and including `t1`."""
        times = self.change_times(page, t1)
        return list(times[bisect_right(times, t0) : bisect_right(times, t1)])

    def change_times(self, page: Page, until: float) -> Sequence[float]:
        """The page's changes in order, at least those up to `until`."""
        if page.dynamics is Dynamics.STATIC:
            return ()
        changes = self._changes.get(page.number)
        if changes is None:
            changes = self._changes[page.number] = ChangeTimes(page.rhythm, page.hash, self.origin)
        return changes.until(until)

    def changed_at(self, page: Page, version: int) -> float:
        """When this version came up; the first is as old as the page, days to months before the origin."""
        if version <= 1:
            return self.origin - 86_400.0 - page.hash % (200 * 86_400)
        if page.dynamics is Dynamics.STATIC:
            raise ValueError(f"{page.path} of {page.site.host} never changes: it has no version {version}")
        until = self.origin
        while len(times := self.change_times(page, until)) < version - 1:
            until += 86_400.0
        return times[version - 2]

    def find(self, url: str) -> Page | None:
        """The page at this address, whatever the port."""
        try:
            parts = urlsplit(url)
            site = self.by_host.get(parts.hostname or "")
        except ValueError:
            return None
        return site.by_path.get(parts.path or "/") if site and not parts.query else None

    def url(self, page: Page, port: int | None = None) -> str:
        return address(page.site.host, port, page.path)

    def start_urls(self, port: int | None = None) -> list[str]:
        """Every site's front page."""
        return [self.url(site.front, port) for site in self.sites]
