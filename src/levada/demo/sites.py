"""Responses of a site: HTML pages, robots.txt, sitemap and feed.

Nothing here depends on the time of asking: the same page and version are the same bytes. Links within a site are
paths; links to other sites carry `port`, the ":8000" of the address under which the reader came.
"""

from __future__ import annotations

import gzip
import re
import time
import zlib
from collections.abc import Iterable, Sequence
from heapq import nlargest
from html import escape
from itertools import islice

from levada.demo.chance import mix
from levada.demo.http import HTML, PLAIN, Answer, WebRequest, http_date, parse_http_date
from levada.demo.prose import Article, Vocabulary, capital, headline, sentence, story, words_of
from levada.demo.world import DemoSite, DemoWorld, Page, PageRole, ValidatorKind

_NAVIGATION = 12
_RELATED = 4
_NOTES = 3


def private_path(site: DemoSite) -> str:
    """The area that robots.txt closes."""
    return f"/{words_of(site.language, site.category).private}/"


def old_path(page: Page) -> str:
    """The address that a page had before the site moved it."""
    return f"/old/{page.number}"


def linked_pages(page: Page) -> list[Page]:
    """The pages that the main part of this one lists."""
    site = page.site
    if page.role is PageRole.FRONT:
        return [*site.sections, *([] if site.section_names else _linkable(site.items))]
    if page.role is PageRole.SECTION:
        return site.listed_in(page.section)
    # Related pages are neighbours in the site, so that no page has to know its whole section.
    first = page.number - site.front.number
    step = max(1, len(site.section_names))
    around = (site.pages[i] for i in range(first + step, len(site.pages), step))
    return _linkable(islice(around, _RELATED + 1))[:_RELATED]


def _linkable(pages: Iterable[Page]) -> list[Page]:
    return [page for page in pages if not page.only_in_sitemap]


def _title(page: Page) -> str:
    if page.role is PageRole.FRONT:
        return capital(page.site.label, page.language)
    if page.role is PageRole.SECTION:
        return capital(page.site.section_names[page.section], page.language)
    return headline(page.language, page.site.category, page.hash, 0)


def _trending(world: DemoWorld, page: Page, words: Vocabulary, version: int) -> str:
    """The word of the day, on one version in eight."""
    dice = mix(page.hash, 6_000_000 + version)
    day = int(world.changed_at(page, version) // 86_400)
    return words.trending[mix(world.seed, day) % len(words.trending)] if dice % 8 == 0 else ""


def _tell(world: DemoWorld, page: Page, version: int) -> Article:
    words = words_of(page.language, page.site.category)
    newest = range(version, max(1, version - _NOTES), -1) if page.site.category == "news" else ()
    clocks = tuple(time.strftime("%H:%M", time.gmtime(world.changed_at(page, v))) for v in newest)
    # From two thirds to four thirds of the size asked for, less what is around the text.
    size = world.page_bytes * (667 + page.hash % 667) // 1000 - 1_500
    return story(words, page.site.category, page.hash, version, clocks, _trending(world, page, words, version), size)


def _anchor(page: Page) -> str:
    return f'<a href="{page.path}">{escape(_title(page))}</a>'


def _navigation(site: DemoSite) -> str:
    pages = [site.front, *site.sections[:_NAVIGATION]]
    label = words_of(site.language, site.category).private
    links = [f"<li>{_anchor(page)}</li>" for page in pages]
    links.append(f'<li><a href="{private_path(site)}">{capital(label, site.language)}</a></li>')
    return f"<nav><ul>{''.join(links)}</ul></nav>"


def _listing_html(listed: Sequence[Page], words: Vocabulary, version: int) -> str:
    """Links, each with a teaser; one teaser in the list is new in every version."""
    fresh = version % len(listed) if listed else 0
    lines = []
    for place, other in enumerate(listed):
        wrote = mix(other.hash, version if place == fresh and version > 1 else 0)
        lines.append(f"<li>{_anchor(other)} {escape(sentence(words, wrote), quote=False)}</li>")
    return f"<ul>{''.join(lines)}</ul>"


def _footer(world: DemoWorld, page: Page, words: Vocabulary, port: str) -> str:
    links = [f'<a href="{old_path(other)}">{words.archive}</a>' for other in _moved(page)]
    if page.role is PageRole.FRONT:
        here = world.sites.index(page.site)
        neighbours = [world.sites[(here + step) % len(world.sites)] for step in (1, 2, 3)]
        links += [f'<a href="http://{site.host}{port}/">{site.label}</a>' for site in neighbours]
        links.append(f'<a href="http://www.{page.site.host}{port}/">www</a>')
    return f"<footer>{' '.join(links)}</footer>"


def _moved(page: Page) -> list[Page]:
    """A section still links two of its items under their old addresses."""
    return page.site.listed_in(page.section)[:2] if page.role is PageRole.SECTION else []


def _head(page: Page, told: Article) -> str:
    feed = '<link rel="alternate" type="application/rss+xml" href="/rss.xml">' if page.site.category == "news" else ""
    title = told.headline if page.role is PageRole.ITEM else f"{_title(page)}: {told.headline}"
    return (
        f'<!doctype html>\n<html lang="{page.language}">\n<head><meta charset="utf-8">\n'
        f'<title>{escape(title)}</title>\n<meta name="description" content="{escape(told.figure)}">\n'
        f'<link rel="canonical" href="{page.path}">{feed}</head>'
    )


def render(world: DemoWorld, page: Page, version: int, port: str = "") -> bytes:
    """The page's HTML in this version."""
    words = words_of(page.language, page.site.category)
    told = _tell(world, page, version)
    notes = "".join(f'<p class="note">{escape(note, quote=False)}</p>\n' for note in told.notes)
    text = "".join(f"<p>{escape(paragraph, quote=False)}</p>\n" for paragraph in told.paragraphs)
    listed = linked_pages(page)
    listing = _listing_html(listed, words, version) if page.role is not PageRole.ITEM else ""
    related = "".join(f"<li>{_anchor(other)}</li>" for other in listed) if page.role is PageRole.ITEM else ""
    aside = f"<aside><h2>{words.related}</h2><ul>{related}</ul></aside>\n" if related else ""
    return (
        f"{_head(page, told)}\n<body>\n<header>{_navigation(page.site)}</header>\n<main><article>\n"
        f"<h1>{escape(told.headline)}</h1>\n"
        f'<p class="figure">{escape(told.figure)}</p>\n{notes}{text}</article>\n{listing}</main>\n{aside}'
        f"{_footer(world, page, words, port)}\n</body></html>\n"
    ).encode()


_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
_SMALL_SITE = 60  # up to here, one sitemap without an index
_FEED_ITEMS = 20
_PART = re.compile(r"/sitemap-(\d{1,6})\.xml(\.gz)?\Z")


def robots(site: DemoSite, base: str) -> str:
    pause = site.traits.crawl_delay
    delay = f"Crawl-delay: {pause:g}\n" if pause is not None else ""
    return f"User-agent: *\nDisallow: {private_path(site)}\n{delay}\nSitemap: {base}/sitemap.xml\n"


def sitemap(world: DemoWorld, site: DemoSite, path: str, base: str, now: float) -> str | None:
    """The sitemap at this path; None if there is none. Every third part of a large one is gzipped."""
    size = 40 if len(site.pages) <= 1_000 else 1_000
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


def _index(site: DemoSite, size: int, base: str) -> str:
    parts = range(-(-len(site.pages) // size))
    lines = "".join(f"<sitemap><loc>{base}{_part_path(part)}</loc></sitemap>\n" for part in parts)
    return f'{_XML}<sitemapindex xmlns="{_SITEMAPS}">\n{lines}</sitemapindex>\n'


def _urls(world: DemoWorld, site: DemoSite, pages: Sequence[Page], base: str, now: float) -> str:
    lines = []
    for page in pages:
        # The one site that lies claims that everything changed within the last minute.
        at = _changed(world, page, now) if site.traits.honest_lastmod else now // 60 * 60
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(at))
        lines.append(f"<url><loc>{base}{page.path}</loc><lastmod>{stamp}</lastmod></url>\n")
    return f'{_XML}<urlset xmlns="{_SITEMAPS}">\n{"".join(lines)}</urlset>\n'


def _changed(world: DemoWorld, page: Page, now: float) -> float:
    return world.changed_at(page, world.version_at(page, now))


def feed(world: DemoWorld, site: DemoSite, base: str, now: float) -> str:
    """RSS 2.0 with the items that changed last."""
    latest = nlargest(_FEED_ITEMS, ((_changed(world, page, now), -page.number, page) for page in site.items))
    items = "".join(
        f"<item><title>{escape(headline(page.language, site.category, page.hash, 0))}</title>"
        f"<link>{base}{page.path}</link><pubDate>{http_date(at)}</pubDate></item>\n"
        for at, _, page in latest
    )
    about = f"<title>{site.label}</title><link>{base}/</link><description>{site.label}</description>"
    return f'{_XML}<rss version="2.0"><channel>{about}\n{items}</channel></rss>\n'


_REDIRECTS = (301, 302, 307, 308)


def _same_tag(offered: str, tag: str) -> bool:
    """Whether If-None-Match names this tag; weakly, and gzip or not."""
    tags = (one.strip().removeprefix("W/").replace("-gz", "") for one in offered.split(","))
    return offered.strip() == "*" or tag in tags


class SiteAnswers:
    """The answers of all sites, with a bounded cache of rendered pages."""

    def __init__(self, world: DemoWorld, cache_bytes: int = 192 * 1024 * 1024) -> None:
        self.world = world
        self._cache: dict[tuple[int, int, str, bool], bytes] = {}
        self._room = cache_bytes

    def answer(self, asked: WebRequest, now: float) -> Answer:
        site = self.world.by_host.get(asked.host)
        if site is not None:
            return self._answer_of(site, asked, now)
        bare = asked.host.removeprefix("www.")
        if bare != asked.host and bare in self.world.by_host:
            query = f"?{asked.query}" if asked.query else ""
            return _redirect(301, f"http://{bare}{asked.port}{asked.path}{query}")
        return Answer(404, b"<title>No such site</title><p>No such site.</p>", (HTML,))

    def _answer_of(self, site: DemoSite, asked: WebRequest, now: float) -> Answer:
        page = None if asked.query else site.by_path.get(asked.path)
        if page is not None:
            return self._page(page, asked, now)
        base = f"http://{site.host}{asked.port}"
        if asked.path == "/robots.txt":
            return Answer(200, robots(site, base).encode(), (PLAIN,))
        if asked.path.startswith("/sitemap"):
            listing = sitemap(self.world, site, asked.path, base, now)
            return _listing(listing, asked) if listing is not None else _missing()
        if asked.path == "/rss.xml" and site.category == "news":
            return _listing(feed(self.world, site, base, now), asked)
        if asked.path.startswith(private_path(site)):
            return Answer(200, b"<title>Private</title><p>robots.txt closes this area.</p>", (HTML,))
        return self._moved(site, asked) or _missing()

    def _moved(self, site: DemoSite, asked: WebRequest) -> Answer | None:
        number = asked.path.removeprefix("/old/")
        first = site.front.number
        if not number.isascii() or not number.isdigit() or len(number) > 9:
            return None
        if not first <= int(number) < first + len(site.pages):
            return None
        page = site.pages[int(number) - first]
        status = _REDIRECTS[page.number % len(_REDIRECTS)]
        return _redirect(status, page.path) if asked.path == old_path(page) else None

    def _page(self, page: Page, asked: WebRequest, now: float) -> Answer:
        version = self.world.version_at(page, now)
        zipped = asked.wants_gzip
        tag = f'"{page.hash & 0xFFFFFFFF:x}.{version}"'
        validators = tuple(self._validators(page, version, tag, zipped))
        if self._not_modified(page, version, tag, asked):
            return Answer(304, b"", validators)
        encoding = (("Content-Encoding", "gzip"),) if zipped else ()
        body = self._body(page, version, asked.port, zipped)
        return Answer(200, body, (HTML, ("Vary", "Accept-Encoding"), *encoding, *validators))

    def _validators(self, page: Page, version: int, tag: str, zipped: bool) -> Iterable[tuple[str, str]]:
        sent = page.site.traits.validators
        if sent in (ValidatorKind.BOTH, ValidatorKind.ETAG):
            yield "ETag", f'{tag[:-1]}-gz"' if zipped else tag
        if sent in (ValidatorKind.BOTH, ValidatorKind.MODIFIED):
            yield "Last-Modified", http_date(self.world.changed_at(page, version))

    def _not_modified(self, page: Page, version: int, tag: str, asked: WebRequest) -> bool:
        """RFC 9110, section 13: a tag, if the site knows tags, settles it without the date."""
        sent = page.site.traits.validators
        offered = asked.headers.get("if-none-match")
        if offered is not None:
            return sent in (ValidatorKind.BOTH, ValidatorKind.ETAG) and _same_tag(offered, tag)
        since = parse_http_date(asked.headers.get("if-modified-since", ""))
        knows_dates = sent in (ValidatorKind.BOTH, ValidatorKind.MODIFIED)
        return knows_dates and since is not None and int(self.world.changed_at(page, version)) <= since

    def _body(self, page: Page, version: int, port: str, zipped: bool) -> bytes:
        key = (page.number, version, port, zipped)
        body = self._cache.get(key)
        if body is None:
            body = render(self.world, page, version, port)
            body = _zip(body) if zipped else body
            self._keep(key, body)
        return body

    def _keep(self, key: tuple[int, int, str, bool], body: bytes) -> None:
        self._cache[key] = body
        self._room -= len(body)
        while self._room < 0 and self._cache:
            oldest = next(iter(self._cache))
            self._room += len(self._cache.pop(oldest))


def _zip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=1, mtime=0)


def _redirect(status: int, location: str) -> Answer:
    return Answer(status, b"<title>Moved</title>", (HTML, ("Location", location)))


def _missing() -> Answer:
    return Answer(404, b"<title>Not found</title><p>Nothing is here.</p>", (HTML,))


def _listing(text: str, asked: WebRequest) -> Answer:
    body = text.encode()
    tag = f'"{zlib.crc32(body):08x}"'
    if _same_tag(asked.headers.get("if-none-match", ""), tag):
        return Answer(304, b"", (("ETag", tag),))
    if asked.path.endswith(".gz"):
        return Answer(200, _zip(body), (("Content-Type", "application/gzip"), ("ETag", tag)))
    return Answer(200, body, (("Content-Type", "application/xml; charset=utf-8"), ("ETag", tag)))
