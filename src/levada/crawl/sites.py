"""Site cache, site health and backoff.

The health of a site is separate from that of its pages: the 404 of one page says nothing about the site, but five
unanswered requests in a row do. A site that keeps failing gets a backoff, longer each time.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from zlib import crc32

import msgspec

from levada.core.errors import StoreAway
from levada.core.protocols import RevisitPolicy, Sites
from levada.core.reasons import Reason
from levada.core.records import FOREVER, RobotsRecord, SiteRecord
from levada.core.settings import PolitenessSettings
from levada.core.site_rules.pace import SitePaces
from levada.crawl.executor import StoreExecutor
from levada.crawl.visits import Fetched
from levada.pages.robots import RobotsRules

log = logging.getLogger(__name__)


def doubling(first: float, times: int, most: float, url: str) -> float:
    """`first`, doubled `times` times, at most `most`, spread by up to a fifth.

    The spread depends on the URL alone: pages that failed together do not come back together, and a rerun decides
    the same.
    """
    spread = 0.9 + 0.2 * (crc32(url.encode()) / 2**32)
    return float(min(first * 2 ** min(max(times, 0), 60), most)) * spread


def retry_after(value: str | None, now: float, most: float) -> float | None:
    """Seconds that a Retry-After header asks for; None if it cannot be parsed."""
    if not value:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), most)
    moment = http_date(value)
    return None if moment is None else min(max(moment - now, 0.0), most)


def http_date(value: str | None) -> float | None:
    """The time in a header; None if it cannot be parsed. No zone means UTC."""
    if not value:
        return None
    try:
        moment = parsedate_to_datetime(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def largest(*delays: float | None) -> float | None:
    """The largest delay; None if there is none."""
    return max((delay for delay in delays if delay is not None), default=None)


def _readable(record: SiteRecord) -> tuple[tuple[str, RobotsRecord], ...]:
    """Its robots.txt by scheme, without those that could not be fetched."""
    return tuple(entry for entry in record.robots if entry[1].trouble is None)


def rests_by_hours(record: SiteRecord, paces: SitePaces, now: float) -> bool:
    """Whether a site rests until its active hours begin, and for nothing else."""
    return now < record.rest_until == paces(record.site).opens_at(now)


def opened(record: SiteRecord, before: SitePaces, now: SitePaces, at: float) -> float | None:
    """Until when a site rests whose active hours are other ones now; None if it rests as before."""
    if not rests_by_hours(record, before, at):
        return None
    opens_at = now(record.site).opens_at(at)
    return min(opens_at, record.rest_until) if opens_at != record.rest_until else None


_NO_ANSWER = {Reason.DNS, Reason.CONNECT, Reason.TLS, Reason.PROTOCOL, Reason.SECONDS, Reason.MIN_RATE}
SHUT_OUT = frozenset({Reason.CREDENTIALS, Reason.LOGIN_FAILED, Reason.PROXY})
"""Those that keep a crawl out of a site: it rests at once, because another attempt may lock an account."""

SITE_TROUBLE = frozenset({*_NO_ANSWER, *SHUT_OUT, Reason.ROBOTS_UNREACHABLE})
"""The reasons that say something about a site and not only about a page."""

SITE_AWAY = frozenset({Reason.DNS, Reason.CONNECT, Reason.ROBOTS_UNREACHABLE, *SHUT_OUT})
"""Those for which a page is due again as soon as its site works again: they never concern one page alone."""


class Backoff(msgspec.Struct, frozen=True):
    """A pause in fetching a site, after failures in a row or a Retry-After."""

    until: float
    was_asked_for: bool  # by a Retry-After


class SiteHealth(msgspec.Struct, frozen=True):
    """What an answer says about its site: whether a backoff begins, or whether failures in a row have ended."""

    backoff: Backoff | None = None
    recovered: bool = False


@dataclass
class SiteCache:
    """The records of the sites in use, written through to the store, and what answers say about their health.

    `admitted` grows while the crawl runs: saving a record that was read before must not undo an admission.
    """

    sites: Sites
    executor: StoreExecutor
    settings: PolitenessSettings
    admitted: Container[str] = ()
    most_kept: int = 5_000
    _kept: OrderedDict[str, SiteRecord] = field(default_factory=OrderedDict, init=False)

    async def get(self, site: str) -> SiteRecord:
        record = self._kept.get(site)
        if record is None:
            stored = await self.executor.run(self.sites.site, site)
            record = self._kept.get(site)  # another task may have read and changed it meanwhile
            if record is None:
                record = stored or SiteRecord(site)
                self._keep(record)
        return record

    def clear(self) -> None:
        """Read the records from the store again: others may have changed them."""
        self._kept.clear()

    def forget(self, is_lost: Callable[[str], bool]) -> None:
        """Read the records of these sites again: another process owns them."""
        for site in [site for site in self._kept if is_lost(site)]:
            del self._kept[site]

    async def put_robots(self, site: str, scheme: str, robots: RobotsRecord, delay: float | None) -> None:
        """Store a robots.txt and its `delay`; a site gets the largest delay of its schemes."""
        record = await self.get(site)
        others = tuple(entry for entry in record.robots if entry[0] != scheme)
        if robots.trouble is None:
            agent = self.settings.agent
            delay = largest(delay, *(RobotsRules(other.text).delay(agent) for _, other in others))
        else:
            delay = record.delay
        await self._save(msgspec.structs.replace(record, robots=(*others, (scheme, robots)), delay=delay))

    async def answered(self, site: str) -> bool:
        """Forget the failures of a site that works; returns whether they had begun a backoff, which stays."""
        record = self._kept.get(site)
        if record is None or not record.failures:
            return False
        await self._save(msgspec.structs.replace(record, failures=0))
        return record.failures >= self.settings.backoff_after

    async def failed(self, site: str, now: float, *, at_once: bool = False, steady: bool = False) -> float | None:
        """Count a failure; returns the end of the backoff, if there is one.

        `at_once`: there is. `steady`: it is no longer than the first, because the failure is not the site's.
        """
        record = await self.get(site)
        if record.rest_until > now:
            return record.rest_until  # the request began before the backoff: it says nothing new
        failures = max(record.failures + 1, self.settings.backoff_after if at_once else 0)
        if steady:
            failures = min(failures, max(record.failures, self.settings.backoff_after))
        if failures < self.settings.backoff_after:
            self._keep(msgspec.structs.replace(record, failures=failures))
            return None
        doublings = min(failures - self.settings.backoff_after, 30)
        until = now + float(min(self.settings.backoff * 2**doublings, self.settings.max_backoff))
        await self._save(msgspec.structs.replace(record, failures=failures, rest_until=until))
        return until

    async def back_off(self, site: str, until: float) -> None:
        """Back off as a Retry-After of the site asks."""
        record = await self.get(site)
        await self._save(msgspec.structs.replace(record, rest_until=max(until, record.rest_until)))

    async def rest(self, site: str, until: float) -> None:
        """Lease no page of a site until its active hours begin."""
        record = await self.get(site)
        if record.rest_until < until:
            await self._save(msgspec.structs.replace(record, rest_until=until))

    async def wake(self, before: SitePaces, now: SitePaces, at: float) -> None:
        """End the rest of sites that would be asked, had `now` held in place of `before`."""
        stored = await self.executor.run(lambda: list(self.sites.sites()))
        for record in [*self._kept.values(), *stored]:
            if (until := opened(record, before, now, at)) is not None:
                await self._save(msgspec.structs.replace(await self.get(record.site), rest_until=until))

    async def drop(self, site: str) -> None:
        """Take a site out of the crawl; its pages stay stored."""
        record = await self.get(site)
        await self._save(msgspec.structs.replace(record, admitted=False, rest_until=FOREVER), must=True)

    async def readmit(self, site: str) -> None:
        """Take a dropped site back into the crawl."""
        record = await self.get(site)
        if record.dropped:
            await self._save(msgspec.structs.replace(record, rest_until=0.0), must=True)

    async def try_again(self, site: str, now: float) -> None:
        """End a backoff that failures began, for a page that a user wants now; the next failure begins a longer one.

        A site that was dropped, or asked by a Retry-After to be left alone, rests on.
        """
        record = await self.get(site)
        if record.dropped:
            return
        robots = _readable(record)
        rest_until = 0.0 if record.failures else record.rest_until
        if robots != record.robots or (rest_until != record.rest_until > now):
            await self._save(msgspec.structs.replace(record, robots=robots, rest_until=rest_until))

    async def forgive(self, site: str) -> None:
        """Forget failures that were not the site's, and the backoff that they began."""
        record = await self.get(site)
        if not record.dropped and (record.failures or _readable(record) != record.robots):
            record = msgspec.structs.replace(record, failures=0, rest_until=0.0, robots=_readable(record))
            await self._save(record)

    async def after(self, fetched: Fetched) -> SiteHealth:
        """Record how the site answered, or that it did not."""
        site, now = fetched.lease.page.site, fetched.at
        response = fetched.response
        trouble = fetched.refused if response is None else response.reason
        if response is not None and response.status in (429, 503):
            wait = retry_after(response.header("retry-after"), now, self.settings.max_backoff)
            if wait:  # a wait that is over does not say when the site works again
                await self.back_off(site, now + wait)
                return SiteHealth(Backoff(now + wait, was_asked_for=True))
        if trouble in SITE_TROUBLE or (response is not None and (response.status >= 500 or response.status == 429)):
            # One page may ask for more than the others: only what keeps the crawl out of all of them is final.
            at_once = trouble in SHUT_OUT and (response is None or not response.status)
            until = await self.failed(site, now, at_once=at_once, steady=trouble is Reason.PROXY)
            return SiteHealth(None if until is None else Backoff(until, was_asked_for=False))
        recovered = response is not None and response.status > 0 and await self.answered(site)
        return SiteHealth(recovered=recovered)

    async def _save(self, record: SiteRecord, *, must: bool = False) -> None:
        """`must`: somebody asked for it, and is told if it cannot be stored."""
        if not record.admitted and record.site in self.admitted:
            record = msgspec.structs.replace(record, admitted=True)
        self._keep(record)
        try:
            await self.executor.run(self.sites.save, record)
        except StoreAway as error:
            if must:
                raise
            log.debug("%s is not saved: %s", record.site, error)  # the next change of it is

    def _keep(self, record: SiteRecord) -> None:
        self._kept[record.site] = record
        self._kept.move_to_end(record.site)
        if len(self._kept) > self.most_kept:
            self._kept.popitem(last=False)


class SiteLimits:
    """Tells the revisit policy how many visits each site can have, where that is not what all sites can."""

    def __init__(self, paces: SitePaces, policy: RevisitPolicy) -> None:
        self.paces = paces
        self._policy = policy
        self._told: dict[str, float] = {}

    def learn(self, site: str, asked: float | None) -> None:
        """A site asks for this delay."""
        limit = self.paces(site).per_second(asked)
        if limit != self._told.get(site, self.paces.common.per_second(None)):
            if len(self._told) >= _MOST_TOLD:
                self._told.clear()  # the next visits tell them again
            self._told[site] = limit
            self._policy.limit_site(site, limit)


_MOST_TOLD = 50_000
