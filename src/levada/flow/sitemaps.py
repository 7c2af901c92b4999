"""Which sitemaps does a site have? Those that its robots.txt names, or else the usual one."""

from __future__ import annotations

from levada.errors import BadUrl
from levada.flow.sieve import LinkSieve, priority
from levada.pages.robots import RobotsRules
from levada.pages.urls import canonical, site_of
from levada.records import Found, How, PageKind

__all__ = ["named_sitemaps"]

_MOST = 50


def named_sitemaps(origin: str, rules: RobotsRules, sieve: LinkSieve) -> list[Found]:
    """What to hold, now that the robots.txt of `origin` was read: nothing outside the crawl's scope."""
    if not sieve.goes_to(site_of(origin)):
        return []
    urls = [url for address in rules.sitemaps()[:_MOST] if (url := _spelt(address))] or [f"{origin}/sitemap.xml"]
    urgency = priority(How.SITEMAP, 0, PageKind.SITEMAP)
    return [
        Found(url, site_of(url), PageKind.SITEMAP, How.SITEMAP, priority=urgency)
        for url in urls
        if sieve.goes_to(site_of(url))
    ]


def _spelt(address: str) -> str | None:
    try:
        return canonical(address)
    except BadUrl:
        return None
