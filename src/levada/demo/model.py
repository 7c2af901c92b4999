"""Which sites and pages are there, how do they hang together, and which version does a page show at a time?

A `World` follows from its seed alone. It has the sites, page counts and change classes of the EMACrawler experiment
(`figures`), or the same in proportion for any other number of pages. Front and section pages have change processes
of their own, like every other page: what they list is fixed, what they say about it changes. So the truth about
each page is one list of change times, and version v is on show from its (v-1)th change on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from urllib.parse import urlsplit

from levada.demo.building import build_sites
from levada.demo.changes import ChangeTimes
from levada.demo.figures import Dynamics
from levada.demo.places import Page, PageRole, Site, Validators

__all__ = ["DEFAULT_PAGE_BYTES", "ORIGIN", "Page", "PageRole", "Site", "Validators", "World"]

ORIGIN = 1_767_571_200.0  # Monday, 5 January 2026, 00:00 UTC: when every page shows its version 1
DEFAULT_PAGE_BYTES = 6_000


class World:
    """The sites, their pages, and the truth about every change."""

    def __init__(self, seed: int, sites: Sequence[Site], page_bytes: int = DEFAULT_PAGE_BYTES) -> None:
        self.seed = seed
        self.sites = tuple(sites)
        self.page_bytes = page_bytes
        self.origin = ORIGIN
        self.pages = tuple(page for site in self.sites for page in site.pages)
        self.by_host = {site.host: site for site in self.sites}
        self._changes: dict[int, ChangeTimes] = {}

    @staticmethod
    def build(seed: int = 1, pages: int | None = None, *, page_bytes: int = DEFAULT_PAGE_BYTES) -> World:
        """The world of this seed, with as many pages as the experiment had, or with `pages`."""
        return World(seed, build_sites(seed, pages), page_bytes)

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
        return f"http://{page.site.host}{f':{port}' if port else ''}{page.path}"

    def start_urls(self, port: int | None = None) -> list[str]:
        """Every site's front page."""
        return [self.url(site.front, port) for site in self.sites]
