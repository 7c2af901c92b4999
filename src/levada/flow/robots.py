"""May this page be asked for at all? robots.txt by RFC 9309, kept with its site.

A 4xx means that there is none, so all is allowed. A 5xx, an answer that broke off or none at all means that nobody
knows: nothing is fetched from there until one could be read. At most 500 KiB are read.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Awaitable, Callable

import msgspec

from levada.errors import BadUrl
from levada.flow.settings import PolitenessSettings
from levada.flow.sitebook import SiteBook, largest
from levada.pages.robots import RobotsRules
from levada.pages.urls import canonical, origin_of, scheme_of, site_of
from levada.ports import Clock, Fetcher
from levada.reasons import Reason
from levada.records import Request, Response, RobotsRecord

__all__ = ["ROBOTS_BYTES", "RobotsBook", "Verdict"]

ROBOTS_BYTES = 500 * 1024
_REDIRECTS_FOLLOWED = 5
_MOST_ALLOWED = 20_000  # addresses, some 4 MB
# These say more to a person than that robots.txt could not be read.
_TELLING = (Reason.DNS, Reason.CONNECT, Reason.TLS, Reason.ADDRESS)
_REDIRECTS = (301, 302, 303, 307, 308)
_AS_IT_STANDS = (("Accept-Encoding", "identity"),)


class Verdict(msgspec.Struct, frozen=True):
    """`reason` is None if the page may be fetched; `asked` if robots.txt was fetched or waited for just now."""

    reason: Reason | None
    asked: bool = False
    delay: float | None = None  # between two requests, if the site asks for one, under whichever scheme


class _Known(msgspec.Struct, frozen=True):
    record: RobotsRecord
    rules: RobotsRules
    site: str
    delay: float | None  # of the site, when this was learnt


class RobotsBook:
    """What each origin allows; `on_news` hears of a robots.txt that was just read."""

    def __init__(
        self,
        fetcher: Fetcher,
        sites: SiteBook,
        clock: Clock,
        settings: PolitenessSettings,
        on_news: Callable[[str, RobotsRules], Awaitable[None]],
        most_kept: int = 2_000,
    ) -> None:
        self._fetcher = fetcher
        self._sites = sites
        self._clock = clock
        self._settings = settings
        self._on_news = on_news
        self._most_kept = most_kept
        self._known: dict[str, _Known] = {}
        self._delays: dict[str, float | None] = {}  # by site
        self._allowed: dict[str, bool] = {}  # by address: links are judged when found, and again when asked for
        self._asking: dict[str, asyncio.Event] = {}

    async def verdict(self, url: str) -> Verdict:
        origin = origin_of(url)
        known, asked = self._known.get(origin), False
        while known is None or known.record.expires_at <= self._clock.now():
            if waiting := self._asking.get(origin):
                await waiting.wait()  # several askers wait for one answer
                known, asked = self._known.get(origin), True
            else:
                known, asked = await self._learn(origin)
        delay = self._delays[known.site]
        if known.record.trouble:
            return Verdict(known.record.trouble, asked, delay)
        return Verdict(None if self._allows(known, url) else Reason.ROBOTS, asked, delay)

    def closes(self, url: str) -> bool:
        """Whether a robots.txt that was read says no to this address; no word is no."""
        known = self._known.get(origin_of(url))
        return known is not None and not self._allows(known, url)

    def _allows(self, known: _Known, url: str) -> bool:
        """Remembered: the menu of every page may name the same closed door."""
        allowed = self._allowed.get(url)
        if allowed is None:
            if len(self._allowed) >= _MOST_ALLOWED:
                self._allowed.clear()
            allowed = self._allowed[url] = known.rules.allows(url, self._settings.agent)
        return allowed

    async def _learn(self, origin: str) -> tuple[_Known, bool]:
        """What is known of this origin from now on; True if that took an exchange."""
        done = self._asking[origin] = asyncio.Event()
        try:
            known, fetched = await self._read(origin)
            if len(self._known) >= self._most_kept:
                self._known.clear()
                self._delays.clear()
            if origin in self._known or not self._known:
                self._allowed.clear()  # what was said by what is no longer known
            self._known[origin] = known
            self._delays[known.site] = known.delay
            return known, fetched
        finally:
            del self._asking[origin]
            done.set()

    async def _read(self, origin: str) -> tuple[_Known, bool]:
        scheme = origin.partition(":")[0]
        site = site_of(origin)
        record = dict((await self._sites.get(site)).robots).get(scheme)
        fetched = record is None or record.expires_at <= self._clock.now()
        if record is None or fetched:
            record = self._record(await self._fetch(f"{origin}/robots.txt"))
        rules = RobotsRules.parse(record.text)
        delay = rules.delay(self._settings.agent)
        if fetched:
            # The sitemaps it names come first: killed before the next line, it is read and they are named again.
            if record.trouble is None:
                await self._on_news(origin, rules)
            await self._sites.put_robots(site, scheme, record, delay)
        kept = (await self._sites.get(site)).delay
        return _Known(record, rules, site, largest(delay, kept)), fetched

    async def _fetch(self, url: str) -> Response:
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
        return Response(url, 404)  # RFC 9309, 2.3.1.2: beyond five redirects it counts as not there

    async def _ask(self, url: str) -> Response:
        """If it cannot be decoded as it was said to be, it is asked for once more, to be read as it stands."""
        response = await self._fetcher.fetch(Request(url, keep_bytes=ROBOTS_BYTES))
        is_undecoded = response.reason is Reason.PROTOCOL and response.header("content-encoding") is not None
        if not is_undecoded or not 200 <= response.status < 300:
            return response
        plain = await self._fetcher.fetch(Request(url, _AS_IT_STANDS, keep_bytes=ROBOTS_BYTES))
        return plain if _is_text(plain.body) else response

    def _record(self, response: Response) -> RobotsRecord:
        now = self._clock.now()
        is_absent = 400 <= response.status < 500 and response.status != 429  # whatever became of its body
        if not is_absent and (response.reason is not None or not 200 <= response.status < 400):
            trouble = response.reason if response.reason in _TELLING else Reason.ROBOTS_UNREACHABLE
            return RobotsRecord("", now, now + self._settings.robots_retry, trouble)
        text = response.body.decode("utf-8", "replace") if response.status < 300 else ""
        return RobotsRecord(text, now, now + self._settings.robots_seconds)


def _is_text(body: bytes) -> bool:
    """Whether it is UTF-8, as nothing compressed is; the last letter may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True
