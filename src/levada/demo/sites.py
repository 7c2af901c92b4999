"""What does a site of the bundled web answer at a given time?"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable

from levada.demo.html import old_path, private_path, render
from levada.demo.listings import feed, robots, sitemap
from levada.demo.model import World
from levada.demo.places import Page, Site, Validators
from levada.demo.wire import Answer, Asked, http_date, parse_http_date

__all__ = ["SiteAnswers"]

_HTML = ("Content-Type", "text/html; charset=utf-8")
_REDIRECTS = (301, 302, 307, 308)


def _same_tag(offered: str, tag: str) -> bool:
    """Whether If-None-Match names this tag; weakly, and gzip or not."""
    tags = (one.strip().removeprefix("W/").replace("-gz", "") for one in offered.split(","))
    return offered.strip() == "*" or tag in tags


class SiteAnswers:
    """Pure but for a bounded memory of what was rendered."""

    def __init__(self, world: World, cache_bytes: int = 192 * 1024 * 1024) -> None:
        self.world = world
        self._cache: dict[tuple[int, int, str, bool], bytes] = {}
        self._room = cache_bytes

    def answer(self, asked: Asked, now: float) -> Answer:
        site = self.world.by_host.get(asked.host)
        if site is not None:
            return self._answer_of(site, asked, now)
        bare = asked.host.removeprefix("www.")
        if bare != asked.host and bare in self.world.by_host:
            query = f"?{asked.query}" if asked.query else ""
            return _redirect(301, f"http://{bare}{asked.port}{asked.path}{query}")
        return Answer(404, b"<title>No such site</title><p>No such site.</p>", (_HTML,))

    def _answer_of(self, site: Site, asked: Asked, now: float) -> Answer:
        page = None if asked.query else site.by_path.get(asked.path)
        if page is not None:
            return self._page(page, asked, now)
        base = f"http://{site.host}{asked.port}"
        if asked.path == "/robots.txt":
            return _plain(robots(site, base), "text/plain; charset=utf-8")
        if asked.path.startswith("/sitemap"):
            listing = sitemap(self.world, site, asked.path, base, now)
            return _listing(listing, asked) if listing is not None else _missing()
        if asked.path == "/rss.xml" and site.category == "news":
            return _listing(feed(self.world, site, base, now), asked)
        if asked.path.startswith(private_path(site)):
            return Answer(200, b"<title>Private</title><p>robots.txt closes this area.</p>", (_HTML,))
        return self._moved(site, asked) or _missing()

    def _moved(self, site: Site, asked: Asked) -> Answer | None:
        number = asked.path.removeprefix("/old/")
        first = site.front.number
        if not number.isascii() or not number.isdigit() or len(number) > 9:
            return None
        if not first <= int(number) < first + len(site.pages):
            return None
        page = site.pages[int(number) - first]
        status = _REDIRECTS[page.number % len(_REDIRECTS)]
        return _redirect(status, page.path) if asked.path == old_path(page) else None

    def _page(self, page: Page, asked: Asked, now: float) -> Answer:
        version = self.world.version_at(page, now)
        zipped = asked.wants_gzip
        tag = f'"{page.hash & 0xFFFFFFFF:x}.{version}"'
        validators = tuple(self._validators(page, version, tag, zipped))
        if self._not_modified(page, version, tag, asked):
            return Answer(304, b"", validators)
        encoding = (("Content-Encoding", "gzip"),) if zipped else ()
        body = self._body(page, version, asked.port, zipped)
        return Answer(200, body, (_HTML, ("Vary", "Accept-Encoding"), *encoding, *validators))

    def _validators(self, page: Page, version: int, tag: str, zipped: bool) -> Iterable[tuple[str, str]]:
        sent = page.site.validators
        if sent in (Validators.BOTH, Validators.ETAG):
            yield "ETag", f'{tag[:-1]}-gz"' if zipped else tag
        if sent in (Validators.BOTH, Validators.MODIFIED):
            yield "Last-Modified", http_date(self.world.changed_at(page, version))

    def _not_modified(self, page: Page, version: int, tag: str, asked: Asked) -> bool:
        """RFC 9110, section 13: a tag, if the site knows tags, settles it without the date."""
        sent = page.site.validators
        offered = asked.headers.get("if-none-match")
        if offered is not None:
            return sent in (Validators.BOTH, Validators.ETAG) and _same_tag(offered, tag)
        since = parse_http_date(asked.headers.get("if-modified-since", ""))
        knows_dates = sent in (Validators.BOTH, Validators.MODIFIED)
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
    return Answer(status, b"<title>Moved</title>", (_HTML, ("Location", location)))


def _missing() -> Answer:
    return Answer(404, b"<title>Not found</title><p>Nothing is here.</p>", (_HTML,))


def _plain(text: str, content_type: str) -> Answer:
    return Answer(200, text.encode(), (("Content-Type", content_type),))


def _listing(text: str, asked: Asked) -> Answer:
    body = text.encode()
    tag = f'"{zlib.crc32(body):08x}"'
    if _same_tag(asked.headers.get("if-none-match", ""), tag):
        return Answer(304, b"", (("ETag", tag),))
    if asked.path.endswith(".gz"):
        return Answer(200, _zip(body), (("Content-Type", "application/gzip"), ("ETag", tag)))
    return Answer(200, body, (("Content-Type", "application/xml; charset=utf-8"), ("ETag", tag)))
