"""The worker loop: leases in, visits through the steps, commits out.

    frontier --lease--> agenda --> fetch --> [parse] --> parse --> settle --> [catalog] --> one commit

Any part may stop at any instant; what was not committed is leased again. Steps decide and return; only this loop
sends things on. An error of the store ends the crawl, trouble with a page never does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress

import msgspec

from levada.errors import LevadaError, StoreError
from levada.flow.agenda import Agenda
from levada.flow.catalog import CatalogStep
from levada.flow.duplicates import DuplicateBook
from levada.flow.fetch import Fetched, FetchStep
from levada.flow.hearing import HearingStep
from levada.flow.holding import OpenLeases
from levada.flow.parse import ParseStep, Visited
from levada.flow.progress import Progress, Report
from levada.flow.replanning import ReplanningStep
from levada.flow.robots import RobotsBook
from levada.flow.settings import Settings
from levada.flow.settling import Settler
from levada.flow.sieve import LinkSieve
from levada.flow.sitebook import SiteBook
from levada.flow.sitemaps import named_sitemaps
from levada.flow.storekeeper import Storekeeper
from levada.flow.weather import Rest, Weather
from levada.pages.robots import RobotsRules
from levada.ports import Census, Clock, Fetcher, Frontier, Notices, Parser, RevisitPolicy, Sites
from levada.reasons import Reason
from levada.records import Lease, Notice, PageRecord, PageState, Settled, Standing

__all__ = ["Crawl", "CrawlPorts"]

log = logging.getLogger(__name__)

_TICK = 0.02  # seconds of the wall: nothing is looked at more often
_LOOK = 60.0  # at least so often the frontier is asked, in case others write too
_REPLAN_PAUSE = 0.2  # seconds of the wall: planning pages anew takes a small part of a core
_INSTANT = 1.0  # seconds of the wall
_WATCH = 0.5  # seconds of the wall between two looks at the whole collection


class CrawlPorts(msgspec.Struct, frozen=True):
    """Everything outside that a crawl needs."""

    clock: Clock
    frontier: Frontier
    sites: Sites
    notices: Notices
    census: Census
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
        keeper: Storekeeper | None = None,
        watched: bool = True,
    ) -> None:
        self._ports = ports
        self._settings = settings
        self.clock = self._clock = ports.clock
        self._started = ports.clock.now()
        self._cutoff = self._started if once else None
        self._max_pages = max_pages
        self._listener = on_committed
        self._keeper = keeper or Storekeeper()
        self._watched = watched
        self.progress = Progress(self._started, ports.policy.beliefs)
        self.standing = Standing()
        polite, budget = settings.politeness, settings.budget
        self.agenda = Agenda(
            polite.delay,
            polite.at_once,
            per_hour=budget.per_hour,
            per_site_per_hour=budget.per_site_per_hour,
            # Where time runs faster, an instant of ours is many fetches of the budget, and none is to be lost.
            burst=1.0 + _INSTANT * (settings.clock.speed - 1.0) * budget.per_hour / 3600.0,
        )
        admitted = (record.site for record in ports.sites.sites() if record.admitted)
        self._sieve = LinkSieve(settings.crawl, admitted, lambda url: self._robots.closes(url))
        self._sites = SiteBook(ports.sites, self._keeper, polite, self._sieve.admitted)
        self._weather = Weather(self._sites)
        self._robots = RobotsBook(ports.fetcher, self._sites, self._clock, polite, self._read_robots)
        self._fetch = FetchStep(ports.fetcher, self._clock, ports.policy)
        self._parse = ParseStep(ports.parser)
        self._settler = Settler(settings, ports.policy, self._sieve, DuplicateBook(settings.crawl))
        self._hear = HearingStep(ports.notices, ports.policy, self._keeper)
        pause = _REPLAN_PAUSE * settings.clock.speed
        self._replan = ReplanningStep(ports.census, ports.notices, ports.policy, self._keeper, self._clock, pause)
        self.catalog = CatalogStep(ports.frontier, self._keeper, self._sieve, self._clock, settings, self._settled)
        self.fetching = 0
        self.parsing = 0
        self._open = OpenLeases()
        self._visiting: set[asyncio.Task[None]] = set()
        self._begun = 0
        self._more_there = True  # the last lease brought something: another may bring more
        self._worth_waiting = 0.0  # until then a crawl that goes once waits for a site that asked for patience
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
            await self._run_steps()
            standing = await self._keeper.run(self._ports.frontier.standing, self._clock.now())
        finally:
            self._keeper.close()
        now = self._clock.now()
        return self.progress.report(standing.stored, now, now - self._started, self._stopped)

    async def _run_steps(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self.catalog.run())
                beside = [tasks.create_task(self._watch())] if self._watched else []
                if self._cutoff is None:
                    beside.append(tasks.create_task(self._replan.run()))
                await self._lease_until_done()
                await _cancelled([*beside, *self._visiting])
                self.catalog.finish()  # last: what the visits have brought so far is kept
        except* LevadaError as group:
            raise group.exceptions[0] from None
        finally:
            await self._give_back()

    # Leasing

    async def _lease_until_done(self) -> None:
        while not self._stopped:
            self._news.clear()
            room = self._room()
            if room <= 0 and self._open:
                self._more_there = True
                await self._wait_for_news(_LOOK)
                continue
            leases = await self._lease(room)
            self._more_there = bool(leases)
            for lease in leases:
                if self._open.take(lease):
                    self.agenda.put(lease)
            self._pump()
            if leases:
                continue
            if not self._open and await self._is_done():
                self.stop("limit" if self._reached_limit() else "done")
            else:
                await self._wait_for_news(await self._until_next_due())

    def _room(self) -> int:
        """How many pages to lease: enough to keep busy, no more than can be asked for before a lease ends."""
        slots, budget, waiting = self._settings.fetch.slots, self._settings.budget, len(self.agenda)
        if waiting >= slots or len(self._open) >= 6 * slots:
            return 0
        room = 4 * slots - waiting
        if budget.per_hour:
            room = min(room, 1 + int(budget.per_hour * self._lease_seconds() / 3600) - waiting)
        if self._max_pages is not None:
            room = min(room, self._max_pages - self._begun - waiting)
        return max(0, room)

    async def _lease(self, room: int) -> list[Lease]:
        now, seconds = self._clock.now(), self._lease_seconds()
        return await self._keeper.run(self._ports.frontier.lease, now, room, seconds, self._cutoff)

    def _lease_seconds(self) -> float:
        return self._settings.store.lease_seconds * max(1.0, self._settings.clock.speed)

    def _reached_limit(self) -> bool:
        return self._max_pages is not None and self._begun >= self._max_pages

    async def _is_done(self) -> bool:
        """Nothing is under way: is there anything left that this crawl should wait for?"""
        if self._reached_limit():
            return True
        if self._cutoff is None or self._clock.now() <= self._worth_waiting:
            return False
        standing = await self._keeper.run(self._ports.frontier.standing, self._cutoff)
        return not standing.workable

    async def _until_next_due(self) -> float:
        """How long nothing can be leased unless there is news."""
        now, tick = self._clock.now(), _TICK * self._settings.clock.speed
        self.standing = await self._keeper.run(self._ports.frontier.standing, now)
        next_due = self.standing.next_due
        if next_due is not None and next_due <= now:
            return 25 * tick  # due, but not for this crawl
        return _LOOK if next_due is None else min(_LOOK, max(tick, next_due - now))

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
        while self._has_room():
            lease = self.agenda.take(now)
            if lease is None:
                break
            self.fetching += 1
            self._begun += 1
            self._start(self._visit(lease))
        for lease in self.agenda.stale():
            if renewed := self._open.renewed(lease):
                self.agenda.put(renewed)
            self._open.close(lease)
        if self._more_there and self._room():
            self._more_there = False
            self._news.set()
        self._arm(now)

    def _has_room(self) -> bool:
        """A slow parser slows the fetching down; bodies that wait count like those under way: memory is one."""
        slots = self._settings.fetch.slots
        return (
            not self._stopped
            and self.fetching < slots
            and self.fetching + self.parsing < 2 * slots
            and self._open.held_bytes < self._settings.fetch.max_buffered_bytes // 2
        )

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._tasks.create_task(work)
        self._visiting.add(task)
        task.add_done_callback(self._visiting.discard)
        return task

    def _arm(self, now: float) -> None:
        ready = self.agenda.next_ready()
        if ready is None or not self._has_room():
            return
        if self._alarm is not None and not self._alarm.done():
            if self._alarm_at <= ready:
                return
            self._alarm.cancel()
        self._alarm_at = ready
        self._alarm = self._start(self._ring(max(0.001, ready - now)))

    async def _ring(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._alarm = None
        self._pump()

    async def _visit(self, lease: Lease) -> None:
        """One page, from the agenda to the catalog."""
        fetched = await self._ask(lease)
        if fetched is None:
            self._begun -= 1
            self.agenda.postpone(lease, self._clock.now())
        else:
            await self._note_answer(fetched)
        self.fetching -= 1
        if fetched is not None:
            self.parsing += 1
        self._pump()
        if fetched is not None:
            settled = await self._read_and_settle(fetched)
            self.parsing -= 1
            self.catalog.put(self._open.under_newest(settled))

    async def _note_answer(self, fetched: Fetched) -> None:
        site = fetched.lease.page.site
        rest = await self._weather.after(fetched)
        self.agenda.finished(site, self._clock.now())
        if rest is not None:
            await self._rest(site, rest)
        self._open.weigh(fetched.lease, len(fetched.response.body) if fetched.response is not None else 0)

    async def _ask(self, lease: Lease) -> Fetched | None:
        """What the site answers; None if the site's turn was spent on its robots.txt."""
        page = lease.page
        try:
            verdict = await self._robots.verdict(page.url)
            self._keep_delay(page.site, verdict.delay)
            if verdict.reason is not None:
                return Fetched(lease, self._clock.now(), refused=verdict.reason)
            return None if verdict.asked else await self._fetch(lease)
        except StoreError:
            raise
        except Exception:
            log.exception("fetching %s", page.url)
            return Fetched(lease, self._clock.now(), refused=Reason.INTERNAL)

    def _keep_delay(self, site: str, delay: float | None) -> None:
        self.agenda.set_delay(site, delay)
        if delay and delay > self._settings.politeness.delay:
            self._ports.policy.restrain(site, 1.0 / delay)

    async def _rest(self, site: str, rest: Rest) -> None:
        if rest.was_asked_for and rest.until - self._clock.now() <= self._settings.politeness.rest:
            self._worth_waiting = max(self._worth_waiting, rest.until)
        held = [self._open.let_go(lease) for lease in self.agenda.hold(site, rest.until)]
        if held:
            await self._keeper.run(self._ports.frontier.release, held)
        self._news.set()

    async def _read_robots(self, origin: str, rules: RobotsRules) -> None:
        if self._settings.crawl.sitemaps:
            found = named_sitemaps(origin, rules, self._sieve)
            await self._keeper.run(self._ports.frontier.add, found, [], self._clock.now())
            self._news.set()

    # Parsing, settling, committing

    async def _read_and_settle(self, fetched: Fetched) -> Settled:
        try:
            visited = await self._parse(fetched)
            self.progress.answered(visited)
            return self._settler.settle(visited, await self._rival(visited))
        except LevadaError:
            raise  # the store or the parser itself does not work: that is no page's fault
        except Exception:
            log.exception("settling %s", fetched.lease.page.url)
            return self._settler.trouble(fetched.lease, fetched.at, Reason.INTERNAL)

    async def _rival(self, visited: Visited) -> PageRecord | None:
        """What is known of the page that this one names canonical."""
        url = visited.parsed.canonical if visited.parsed is not None else None
        if not url or url == visited.fetched.lease.page.url:
            return None
        return await self._keeper.run(self._ports.frontier.page, url)

    def _settled(self, visits: Sequence[Settled], accepted: Sequence[bool]) -> None:
        committed = []
        for settled, is_stored in zip(visits, accepted, strict=True):
            renewed = settled if is_stored else self._open.under_newest(settled)
            if renewed is not settled:  # its lease ended on the way to the store, and is ours again
                self.catalog.put(renewed)
                continue
            self._open.close(settled.lease)
            if is_stored:
                committed.append(settled)
        for settled in committed:
            self.progress.committed(settled)
            if settled.state is not PageState.LIVE:
                self._ports.policy.beliefs.forget(settled.lease.page)
            if settled.notices:
                self._start(self._listen(settled.notices))
        self._listener(committed)
        self._pump()
        self._news.set()

    async def _listen(self, notices: Sequence[Notice]) -> None:
        if await self._hear(notices):
            self._news.set()

    async def _watch(self) -> None:
        """Where the whole collection stands, for whoever looks."""
        while True:
            self.standing = await self._keeper.run(self._ports.frontier.standing, self._clock.now())
            await self._clock.sleep(_WATCH * self._settings.clock.speed)

    # Ending

    async def _give_back(self) -> None:
        left = self._open.drain()
        self.agenda.drain()
        if left:
            with suppress(StoreError):  # leases end by themselves; why the crawl ended is what counts
                await self._keeper.run(self._ports.frontier.release, left)


async def _cancelled(tasks: Iterable[asyncio.Task[None]]) -> None:
    waited = list(tasks)
    for task in waited:
        task.cancel()
    if waited:
        await asyncio.wait(waited)
