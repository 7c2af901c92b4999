"""Why is an address not among the pages? It was refused when it was found, or would be.

The store keeps one example of each reason and site; for the others the rules are asked again that keep a crawl out.
"""

from __future__ import annotations

from levada.adapters.keeping import EXAMPLE_LENGTH
from levada.assemble.reading import Collection
from levada.flow.sitebook import is_dropped
from levada.pages.robots import RobotsRules
from levada.pages.traps import TrapLimits, trap
from levada.pages.urls import scheme_of, site_of
from levada.reasons import Reason
from levada.records import SiteRecord
from levada.telling.why_site import dropped_words

__all__ = ["refusal_words"]


def refusal_words(collection: Collection, addresses: list[str]) -> str | None:
    """`it was refused when it was found: robots`; None if nothing speaks against these addresses."""
    for url in addresses:
        if reason := _recorded(collection, url):
            return f"it was refused when it was found: {reason}"
    return next((words for url in addresses if (words := _ruled_out(collection, url))), None)


def _recorded(collection: Collection, url: str) -> Reason | None:
    example = url[:EXAMPLE_LENGTH]
    site = collection.store.site(site_of(url))
    return next((reason for reason, _, shown in site.refused if shown == example), None) if site else None


def _ruled_out(collection: Collection, url: str) -> str | None:
    site, crawl = collection.store.site(site_of(url)), collection.settings.crawl
    if crawl.scope == "sites" and not (site and (site.admitted or site.pages)):
        return f"{site_of(url)} is none of the start sites, and the crawl does not leave them (crawl.scope)"
    if site and is_dropped(site):
        return dropped_words(url)
    if site and _closed_by_robots(site, url, collection.settings.politeness.agent):
        return f"robots.txt of {site.site} does not allow it"
    limits = TrapLimits(max_length=crawl.max_url_length, max_depth=crawl.max_depth)
    reason = trap(url, collection.clock.now(), limits=limits)
    return f"an address like this is not followed ({reason})" if reason else None


def _closed_by_robots(site: SiteRecord, url: str, agent: str) -> bool:
    robots = dict(site.robots).get(scheme_of(url))
    return robots is not None and not robots.trouble and not RobotsRules.parse(robots.text).allows(url, agent)
