"""Robots cache: the robots.txt of each origin, and the sitemaps that it names.

A 4xx means that there is no robots.txt, so all is allowed. After a 5xx, an incomplete answer or none, nothing is
fetched from the origin until its robots.txt could be read. At most 500 KiB are read.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from levada.core.errors import BadUrl
from levada.core.protocols import Clock, Fetcher
from levada.core.reasons import Reason
from levada.core.records import DiscoveredBy, FoundUrl, PageKind, Response, RobotsRecord
from levada.core.settings import PolitenessSettings
from levada.core.site_rules.rules import NO_RULES, SiteRules
from levada.crawl.link_filter import FAR, LinkFilter, priority
from levada.crawl.sites import SHUT_OUT, SiteCache, largest
from levada.crawl.visits import request_for
from levada.pages.robots import RobotsRules
from levada.pages.urls import canonical, origin_of, scheme_of, site_of

ROBOTS_BYTES = 500 * 1024
_LARGE = 32 * 1024
_MAX_SITEMAPS = 50
_REDIRECTS_FOLLOWED = 5
_MOST_ALLOWED = 20_000  # URLs, about 4 MB
# These reasons say more to a person than that robots.txt could not be read.
_SPECIFIC = (Reason.DNS, Reason.CONNECT, Reason.TLS, Reason.ADDRESS, *SHUT_OUT)
_REDIRECTS = (301, 302, 303, 307, 308)
_UNENCODED = (("Accept-Encoding", "identity"),)


def named_sitemaps(origin: str, rules: RobotsRules, link_filter: LinkFilter) -> list[FoundUrl]:
    """The sitemaps of `origin` for the frontier, within the scope of the crawl."""
    if not link_filter.goes_to(site_of(origin)):
        return []
    named = map(_canonical_or_none, rules.sitemaps()[:_MAX_SITEMAPS])
    urls = [link_filter.rules.tidied(url) for url in named if url] or [f"{origin}/sitemap.xml"]
    urgency = priority(DiscoveredBy.SITEMAP, 0, PageKind.SITEMAP)
    return [
        FoundUrl(url, site_of(url), PageKind.SITEMAP, DiscoveredBy.SITEMAP, priority=urgency)
        for url in urls
        if link_filter.goes_to(site_of(url)) and not link_filter.rules.kept_out(url, FAR, sitemap=True)
    ]


def _canonical_or_none(address: str) -> str | None:
    try:
        return canonical(address)
    except BadUrl:
        return None


class RobotsVerdict(msgspec.Struct, frozen=True):
    """Whether a page may be fetched: `reason` is None if so."""

    reason: Reason | None
    asked: bool = False  # robots.txt was fetched for it, or waited for
    delay: float | None = None  # between two requests, if the site asks for one under any scheme


class OutsideHours(Exception):
    """A site is not asked for its robots.txt, because its active hours are over."""


class _Known(msgspec.Struct, frozen=True):
    record: RobotsRecord
    rules: RobotsRules
    site: str
    delay: float | None  # of the site at that time


@dataclass
class RobotsCache:
    """What each origin allows; `on_news` is called with each robots.txt that was fetched."""

    fetcher: Fetcher
    sites: SiteCache
    clock: Clock
    settings: PolitenessSettings
    on_news: Callable[[str, RobotsRules], Awaitable[None]]
    rules: Callable[[], SiteRules] = lambda: NO_RULES
    is_open: Callable[[str], bool] = lambda site: True  # by the active hours of a site
    most_kept: int = 2_000

    def __post_init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._delays: dict[str, float | None] = {}  # by site
        self._allowed: dict[str, bool] = {}  # by URL: links are checked when found and again before the fetch
        self._asking: dict[str, asyncio.Event] = {}
        self._doubted = float("-inf")  # a robots.txt that could not be fetched before then is asked for again

    def settings_changed(self, settings: PolitenessSettings) -> None:
        """Use these from now on; another agent may be allowed and asked for something else."""
        if settings.agent != self.settings.agent:
            self._known.clear()
            self._delays.clear()
            self._allowed.clear()
        self.settings = settings

    def forget_troubles(self) -> None:
        """Ask again for each robots.txt that could not be fetched, whatever was to be waited for."""
        self._doubted = self.clock.now()
        for origin in [origin for origin, known in self._known.items() if known.record.trouble]:
            del self._known[origin]

    async def verdict(self, url: str) -> RobotsVerdict:
        origin = origin_of(url)
        known, asked = self._known.get(origin), False
        while known is None or known.record.expires_at <= self.clock.now():
            if waiting := self._asking.get(origin):
                await waiting.wait()  # several callers wait for one fetch
                known, asked = self._known.get(origin), True
            else:
                known, asked = await self._learn(origin)
        delay = self._delays[known.site]
        if known.record.trouble:
            return RobotsVerdict(known.record.trouble, asked, delay)
        return RobotsVerdict(None if self._allows(known, url) else Reason.ROBOTS, asked, delay)

    def ask_anew(self, site: str) -> None:
        """Forget that a robots.txt of this site could not be fetched."""
        for origin in (f"https://{site}", f"http://{site}"):
            known = self._known.get(origin)
            if known is not None and known.record.trouble:
                del self._known[origin]

    def closes(self, url: str) -> bool:
        """Whether a known robots.txt forbids this URL.

        Where it has very many rules with a `*`, this is answered when the page has its turn, once for each fetch:
        a page of that site may have thousands of links, and no other site's pages wait for them.
        """
        known = self._known.get(origin_of(url))
        if known is None or not known.rules.is_cheap(self.settings.agent):
            return False
        return not self._allows(known, url)

    def _allows(self, known: _Known, url: str) -> bool:
        """Whether the rules allow a URL; cached, because the menu of every page may have the same links."""
        allowed = self._allowed.get(url)
        if allowed is None:
            if len(self._allowed) >= _MOST_ALLOWED:
                self._allowed.clear()
            allowed = self._allowed[url] = known.rules.allows(url, self.settings.agent)
        return allowed

    async def _learn(self, origin: str) -> tuple[_Known, bool]:
        """Load the rules of an origin; True if robots.txt was fetched."""
        done = self._asking[origin] = asyncio.Event()
        try:
            known, fetched = await self._read(origin)
            if len(self._known) >= self.most_kept:
                self._known.clear()
                self._delays.clear()
            if origin in self._known or not self._known:
                self._allowed.clear()  # it came from rules that are replaced
            self._known[origin] = known
            self._delays[known.site] = known.delay
            return known, fetched
        finally:
            del self._asking[origin]
            done.set()

    async def _read(self, origin: str) -> tuple[_Known, bool]:
        scheme = origin.partition(":")[0]
        site = site_of(origin)
        record = dict((await self.sites.get(site)).robots).get(scheme)
        is_doubted = record is not None and record.trouble is not None and record.fetched_at <= self._doubted
        fetched = record is None or is_doubted or record.expires_at <= self.clock.now()
        if record is None or fetched:
            record = self._record(await self._fetch(f"{origin}/robots.txt"))
        rules, delay = await self._parsed(record.text)
        if fetched:
            # The sitemaps come first: after a crash before the next line, robots.txt is read and names them again.
            if record.trouble is None:
                await self.on_news(origin, rules)
            await self.sites.put_robots(site, scheme, record, delay)
        kept = (await self.sites.get(site)).delay
        return _Known(record, rules, site, largest(delay, kept)), fetched

    async def _parsed(self, text: str) -> tuple[RobotsRules, float | None]:
        """The rules for our agent; of a large file they are read on a thread, and the network goes on."""

        def read() -> tuple[RobotsRules, float | None]:
            rules = RobotsRules(text)
            return rules, rules.delay(self.settings.agent)

        return await asyncio.to_thread(read) if len(text) > _LARGE else read()

    async def _fetch(self, url: str) -> Response:
        if not self.is_open(site_of(url)):
            raise OutsideHours(url)
        for _ in range(1 + _REDIRECTS_FOLLOWED):
            response = await self._ask(url)
            location = response.header("location")
            if response.status not in _REDIRECTS or not location:
                return response
            try:
                url = canonical(location, url)
            except BadUrl:
                break
            if scheme_of(url) not in ("http", "https"):
                break
            if not self.is_open(site_of(url)):
                return Response(url, 0, reason=Reason.ROBOTS_UNREACHABLE)
        return Response(url, 404)  # RFC 9309, 2.3.1.2: after five redirects it counts as absent

    async def _ask(self, url: str) -> Response:
        """Fetch; once more without an encoding if the body is not encoded as its header says."""
        rule = self.rules().visit_rule(url).request
        response = await self.fetcher.fetch(request_for(url, rule, keep_bytes=ROBOTS_BYTES))
        is_undecoded = response.reason is Reason.PROTOCOL and response.header("content-encoding") is not None
        if not is_undecoded or not 200 <= response.status < 300:
            return response
        plain = await self.fetcher.fetch(request_for(url, rule, _UNENCODED, ROBOTS_BYTES))
        return plain if _is_text(plain.body) else response

    def _record(self, response: Response) -> RobotsRecord:
        now = self.clock.now()
        is_absent = 400 <= response.status < 500 and response.status != 429  # even if its body failed
        is_absent = is_absent and response.reason not in SHUT_OUT
        if not is_absent and (response.reason is not None or not 200 <= response.status < 400):
            trouble = response.reason if response.reason in _SPECIFIC else Reason.ROBOTS_UNREACHABLE
            return RobotsRecord("", now, now + self.settings.robots_retry, trouble)
        text = response.body.decode("utf-8", "replace") if response.status < 300 else ""
        return RobotsRecord(text, now, now + self.settings.robots_ttl)


def _is_text(body: bytes) -> bool:
    """Whether it is UTF-8, as no compressed data is; the last letter may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True
