"""The worker loop: leases in, visits through the steps, commits out.

    frontier --lease--> agenda --> fetch --> [parse] --> parse --> settle --> [catalog] --> one commit

Any part may stop at any instant; what was not committed is leased again. Steps decide and return; only this loop
sends things on. An error of the store ends the crawl, trouble with a page never does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from levada.errors import LevadaError
from levada.flow.agenda import Agenda
from levada.flow.catalog import CatalogStep
from levada.flow.duplicates import DuplicateBook
from levada.flow.fetch import Fetched, FetchStep
from levada.flow.parse import ParseStep
from levada.flow.progress import Progress, Report
from levada.flow.robots import RobotsBook
from levada.flow.settings import Settings
from levada.flow.settling import Settler
from levada.flow.sieve import LinkSieve, priority
from levada.flow.sitebook import SiteBook
from levada.flow.storekeeper import Storekeeper
from levada.flow.weather import Weather
from levada.pages.robots import RobotsRules
from levada.pages.urls import site_of
from levada.ports import Clock, Documents, Fetcher, Frontier, Parser, RevisitPolicy, Sites
from levada.reasons import Reason
from levada.records import Found, How, Lease, PageKind, Settled, Standing

__all__ = ["Crawl", "CrawlPorts"]

log = logging.getLogger(__name__)


class CrawlPorts(msgspec.Struct, frozen=True):
    """Everything outside that a crawl needs."""

    clock: Clock
    frontier: Frontier
    sites: Sites
    documents: Documents
    fetcher: Fetcher
    parser: Parser
    policy: RevisitPolicy


class Crawl:
    def __init__(
        self,
        ports: CrawlPorts,
        settings: Settings,
        *,
        once: bool = False,
        max_pages: int | None = None,
        on_committed: Callable[[Sequence[Settled]], None] = lambda visits: None,
    ) -> None:
        self._ports = ports
        self._settings = settings
        self.clock = self._clock = ports.clock
        self._started = ports.clock.now()
        self._cutoff = self._started if once else None
        self._max_pages = max_pages
        self._listener = on_committed
        self._keeper = Storekeeper()
        self.progress = Progress(self._started)
        self.standing = Standing()
        polite, budget = settings.politeness, settings.budget
        self.agenda = Agenda(
            polite.delay, polite.at_once, per_hour=budget.per_hour, per_site_per_hour=budget.per_site_per_hour
        )
        admitted = (record.site for record in ports.sites.sites() if record.admitted)
        self._sieve = LinkSieve(settings.crawl, admitted)
        self._sites = SiteBook(ports.sites, self._keeper, polite)
        self._weather = Weather(self._sites)
        robots = RobotsBook(ports.fetcher, self._sites, self._clock, polite, self._read_robots)
        self._fetch = FetchStep(ports.fetcher, robots, self._clock, polite)
        self._parse = ParseStep(ports.parser)
        self._settler = Settler(settings, ports.policy, self._sieve, DuplicateBook(settings.crawl))
        self.catalog = CatalogStep(
            ports.frontier, self._keeper, self._sieve, settings.store.batch, self._committed
        )
        self.parse_queue: asyncio.Queue[Fetched] = asyncio.Queue(maxsize=settings.fetch.slots)
        self.fetching = 0
        self._open: dict[int, Lease] = {}  # leased, and not yet committed
        self._begun = 0
        self._more_there = True  # the last lease brought something: another may bring more
        self._news = asyncio.Event()
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = float("inf")
        self._stopped = ""

    def stop(self, why: str = "interrupted") -> None:
        """End soon, in good order: what is under way is given back, what has gathered is committed."""
        self._stopped = self._stopped or why
        self._news.set()

    async def run(self) -> Report:
        """Until stopped, or until everything is visited if asked for once."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                background = [tasks.create_task(self.catalog.run()), tasks.create_task(self._watch())]
                background += [tasks.create_task(self._parse_for_ever()) for _ in range(self._settings.fetch.slots)]
                await self._lease_until_done()
                for task in [*background, *self._visits()]:
                    task.cancel()
        except* LevadaError as group:
            raise group.exceptions[0] from None
        finally:
            await self._give_back()
        standing = await self._keeper.run(self._ports.frontier.standing, self._clock.now())
        self._keeper.close()
        now = self._clock.now()
        return self.progress.report(standing.stored, now, now - self._started, self._stopped)

    # Leasing

    async def _lease_until_done(self) -> None:
        tick = 0.02 * self._settings.clock.speed
        while not self._stopped:
            self._news.clear()
            leases = await self._lease_some() if self._wants_more() else []
            self._more_there = bool(leases)
            for lease in leases:
                self._open[lease.page.id] = lease
                self.agenda.put(lease)
            self._pump()
            if not leases:
                if not self._open and await self._is_done():
                    return self.stop("done" if self._max_pages is None or self._begun < self._max_pages else "limit")
                await self._wait_for_news(max(tick, await self._until_next_due()))

    def _wants_more(self) -> bool:
        return len(self.agenda) < self._settings.fetch.slots and len(self._open) < 6 * self._settings.fetch.slots

    async def _lease_some(self) -> list[Lease]:
        room = 4 * self._settings.fetch.slots - len(self.agenda)
        if self._max_pages is not None:
            room = min(room, self._max_pages - self._begun - len(self.agenda))
        if room <= 0:
            return []
        seconds = self._settings.store.lease_seconds * max(1.0, self._settings.clock.speed)
        return await self._keeper.run(self._ports.frontier.lease, self._clock.now(), room, seconds, self._cutoff)

    async def _is_done(self) -> bool:
        """Nothing is under way: is there anything left that this crawl should wait for?"""
        if self._max_pages is not None and self._begun >= self._max_pages:
            return True
        if self._cutoff is None:
            return False
        standing = await self._keeper.run(self._ports.frontier.standing, self._cutoff)
        return not standing.workable

    async def _until_next_due(self) -> float:
        """How long nothing can be leased unless there is news; a minute at most, in case others write too."""
        now = self._clock.now()
        self.standing = await self._keeper.run(self._ports.frontier.standing, now)
        next_due = self.standing.next_due
        return 60.0 if next_due is None else min(60.0, next_due - now)

    async def _wait_for_news(self, seconds: float) -> None:
        nap = asyncio.ensure_future(self._clock.sleep(seconds))
        news = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait((nap, news), return_when=asyncio.FIRST_COMPLETED)
        finally:
            nap.cancel()
            news.cancel()

    # Fetching

    def _pump(self) -> None:
        """Start every visit that may start now, and wake up when the next one may."""
        now = self._clock.now()
        while self.fetching < self._settings.fetch.slots and not self._stopped:
            lease = self.agenda.take(now)
            if lease is None:
                break
            self.fetching += 1
            self._begun += 1
            self._tasks.create_task(self._visit(lease), name="visit")
        if self._more_there and self._wants_more():
            self._more_there = False
            self._news.set()
        self._arm(now)

    def _arm(self, now: float) -> None:
        ready = self.agenda.next_ready()
        if ready is None or self.fetching >= self._settings.fetch.slots:
            return
        if self._alarm is not None and not self._alarm.done():
            if self._alarm_at <= ready:
                return
            self._alarm.cancel()
        self._alarm_at = ready
        self._alarm = self._tasks.create_task(self._ring(max(0.0, ready - now)), name="visit")

    async def _ring(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._alarm = None
        self._pump()

    async def _visit(self, lease: Lease) -> None:
        site = lease.page.site
        try:
            fetched = await self._fetch(lease)
            until = await self._weather.after(fetched)
        finally:
            self.fetching -= 1
            self.agenda.finished(site, self._clock.now())
        if until is not None:
            await self._rest(site, until)
        self._pump()
        await self.parse_queue.put(fetched)

    async def _rest(self, site: str, until: float) -> None:
        held = self.agenda.hold(site, until)
        for lease in held:
            self._open.pop(lease.page.id, None)
        if held:
            await self._keeper.run(self._ports.frontier.release, held)

    async def _read_robots(self, origin: str, rules: RobotsRules) -> None:
        """A robots.txt was read: obey its delay, and hold the sitemaps that it names."""
        site = site_of(origin)
        if (delay := rules.delay(self._settings.politeness.agent)) is not None:
            self.agenda.set_delay(site, delay)
        if self._settings.crawl.sitemaps and (site in self._sieve.admitted or self._settings.crawl.scope == "any"):
            urls = rules.sitemaps() or [f"{origin}/sitemap.xml"]
            found = [
                Found(url, site_of(url), PageKind.SITEMAP, How.SITEMAP, priority=priority(How.SITEMAP, 0, PageKind.SITEMAP))
                for url in urls[:50]
                if site_of(url) == site
            ]
            await self._keeper.run(self._ports.frontier.add, found, [], self._clock.now())

    # Parsing, settling, committing

    async def _parse_for_ever(self) -> None:
        while True:
            fetched = await self.parse_queue.get()
            visited = await self._parse(fetched)
            self.progress.answered(visited)
            try:
                settled = self._settler.settle(visited)
            except Exception:
                log.exception("settling %s", fetched.lease.page.url)
                settled = self._settler.trouble(fetched.lease, fetched.at, Reason.INTERNAL)
            await self.catalog.put(settled)

    def _committed(self, visits: Sequence[Settled]) -> None:
        for settled in visits:
            self._open.pop(settled.lease.page.id, None)
            self.progress.committed(settled)
        self._listener(visits)
        self._news.set()

    async def _watch(self) -> None:
        """Twice a second of the wall: where the whole collection stands, for whoever looks."""
        while True:
            self.standing = await self._keeper.run(self._ports.frontier.standing, self._clock.now())
            await self._clock.sleep(0.5 * self._settings.clock.speed)

    # Ending

    def _visits(self) -> list[asyncio.Task[None]]:
        return [task for task in asyncio.all_tasks() if task.get_name() == "visit"]

    async def _give_back(self) -> None:
        left = list(self._open.values())
        self._open.clear()
        self.agenda.drain()
        if left:
            await self._keeper.run(self._ports.frontier.release, left)
