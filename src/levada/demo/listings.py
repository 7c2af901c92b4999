"""What do robots.txt, the sitemap and the feed of a site say?"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from heapq import nlargest
from html import escape

from levada.demo.html import private_path
from levada.demo.model import World
from levada.demo.places import Page, Site
from levada.demo.prose import headline
from levada.demo.wire import http_date

__all__ = ["feed", "robots", "sitemap"]

_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
_SMALL_SITE = 60  # up to here, one sitemap without an index
_FEED_ITEMS = 20
_PART = re.compile(r"/sitemap-(\d{1,6})\.xml(\.gz)?\Z")


def robots(site: Site, base: str) -> str:
    delay = f"Crawl-delay: {site.crawl_delay:g}\n" if site.crawl_delay is not None else ""
    return f"User-agent: *\nDisallow: {private_path(site)}\n{delay}\nSitemap: {base}/sitemap.xml\n"


def _part_size(site: Site) -> int:
    return 40 if len(site.pages) <= 1_000 else 1_000


def sitemap(world: World, site: Site, path: str, base: str, now: float) -> str | None:
    """The sitemap at this path; None if there is none. Every third part of a large one is gzipped."""
    size = _part_size(site)
    large = len(site.pages) > _SMALL_SITE
    if path == "/sitemap.xml":
        return _index(site, size, base) if large else _urls(world, site, site.pages, base, now)
    part = _PART.match(path)
    if not large or part is None or path != _part_path(int(part[1])):
        return None
    pages = site.pages[int(part[1]) * size : (int(part[1]) + 1) * size]
    return _urls(world, site, pages, base, now) if pages else None


def _part_path(part: int) -> str:
    return f"/sitemap-{part}.xml{'.gz' if part % 3 == 1 else ''}"


def _index(site: Site, size: int, base: str) -> str:
    parts = range(-(-len(site.pages) // size))
    lines = "".join(f"<sitemap><loc>{base}{_part_path(part)}</loc></sitemap>\n" for part in parts)
    return f'{_XML}<sitemapindex xmlns="{_SITEMAPS}">\n{lines}</sitemapindex>\n'


def _urls(world: World, site: Site, pages: Sequence[Page], base: str, now: float) -> str:
    lines = "".join(
        f"<url><loc>{base}{page.path}</loc><lastmod>{_stamp(_lastmod(world, page, now))}</lastmod></url>\n"
        for page in pages
    )
    return f'{_XML}<urlset xmlns="{_SITEMAPS}">\n{lines}</urlset>\n'


def _lastmod(world: World, page: Page, now: float) -> float:
    # The one site that lies claims that everything changed within the last minute.
    return _changed(world, page, now) if page.site.honest_lastmod else now // 60 * 60


def _changed(world: World, page: Page, now: float) -> float:
    return world.changed_at(page, world.version_at(page, now))


def _stamp(t: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(t))


def feed(world: World, site: Site, base: str, now: float) -> str:
    """RSS 2.0 with the items that changed last."""
    latest = nlargest(_FEED_ITEMS, ((_changed(world, page, now), -page.number, page) for page in site.items))
    items = "".join(
        f"<item><title>{escape(headline(page.language, site.category, page.hash, 0))}</title>"
        f"<link>{base}{page.path}</link><pubDate>{http_date(at)}</pubDate></item>\n"
        for at, _, page in latest
    )
    about = f"<title>{site.label}</title><link>{base}/</link><description>{site.label}</description>"
    return f'{_XML}<rss version="2.0"><channel>{about}\n{items}</channel></rss>\n'
