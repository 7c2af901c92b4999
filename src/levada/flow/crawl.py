"""The worker loop: leases in, visits through the steps, commits out.

    frontier --lease--> agenda --> fetch --> [parse] --> parse --> settle --> [catalog] --> one commit

Any part may stop at any instant; what was not committed is leased again. Steps decide and return; only this loop
sends things on. An error of the store ends the crawl, trouble with a page never does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress

from levada.errors import LevadaError, StoreError
from levada.flow.agenda import Agenda
from levada.flow.catalog import CatalogStep
from levada.flow.crawl_ports import CrawlPorts
from levada.flow.duplicates import DuplicateBook
from levada.flow.fetch import Fetched, FetchStep
from levada.flow.hearing import HearingStep
from levada.flow.holding import OpenLeases
from levada.flow.leasing import LOOK, LeasingStep
from levada.flow.live import LiveBoard
from levada.flow.obeying import ObeyingStep
from levada.flow.parse import ParseStep, Visited
from levada.flow.progress import Progress, Report
from levada.flow.replanning import ReplanningStep
from levada.flow.robots import RobotsBook
from levada.flow.second_looks import SecondLooks
from levada.flow.settings import Settings
from levada.flow.settling import Settler
from levada.flow.sieve import LinkSieve
from levada.flow.sitebook import SiteBook, is_dropped
from levada.flow.sitemaps import named_sitemaps
from levada.flow.slots import FetchSlots
from levada.flow.staffing import Post, Staffing, StageView
from levada.flow.stage_rules import stage_rule
from levada.flow.storekeeper import Storekeeper
from levada.flow.waiting import cancelled, news_or
from levada.flow.weather import Rest, Weather
from levada.pages.robots import RobotsRules
from levada.reasons import Reason
from levada.records import Lease, Notice, PageRecord, PageState, Settled, Standing

__all__ = ["Crawl", "CrawlPorts"]

log = logging.getLogger(__name__)

_REPLAN_PAUSE = 0.2  # seconds of the wall: planning pages anew takes a small part of a core
_INSTANT = 1.0  # seconds of the wall
_WATCH = 0.5  # seconds of the wall between two looks at the whole collection
_SLOTS_AT_FIRST = 16  # until it is known how long answers take


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
        staff: Sequence[Post] | None = None,
        board: LiveBoard | None = None,
    ) -> None:
        """`staff` are the stages after the first that have workers; without any, all slots may always be used."""
        self._ports = ports
        self._settings = settings
        self.clock = self._clock = ports.clock
        self.speed = settings.clock.speed
        self._started = ports.clock.now()
        self._once = once
        self._listener = on_committed
        self._keeper = keeper or Storekeeper()
        cutoff = self._started if once else None
        self._leasing = LeasingStep(ports, self._keeper, settings, cutoff=cutoff, max_pages=max_pages)
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
            instant=_INSTANT * (self.speed - 1.0),
        )
        sites = ports.sites.sites()
        admitted = (record.site for record in sites if record.admitted and not is_dropped(record))
        self._sieve = LinkSieve(settings.crawl, admitted, lambda url: self._robots.closes(url))
        self._sites = SiteBook(ports.sites, self._keeper, polite, self._sieve.admitted)
        self._weather = Weather(self._sites)
        self._robots = RobotsBook(ports.fetcher, self._sites, self._clock, polite, self._read_robots)
        self._fetch = FetchStep(ports.fetcher, self._clock, ports.policy)
        self._parse = ParseStep(ports.parser, polite.agent)
        self._settler = Settler(settings, ports.policy, self._sieve, DuplicateBook(settings.crawl))
        self._second_looks = SecondLooks(ports.frontier, ports.notices, self._keeper, self._settler.stand_ins)
        self._hear = HearingStep(ports.notices, ports.policy, self._keeper)
        pause = _REPLAN_PAUSE * self.speed
        self._replan = ReplanningStep(ports.census, ports.notices, ports.policy, self._keeper, self._clock, pause)
        self.catalog = CatalogStep(ports.frontier, self._keeper, self._sieve, self._clock, settings, self._settled)
        self.parsing = 0
        self._open = OpenLeases()
        self._slots = FetchSlots(settings.fetch.slots, self._clock, self.speed, self._wait_for_slot)
        self._staffing = self._staffed(staff)
        self._board = board
        self._visiting: set[asyncio.Task[None]] = set()
        self._more_there = True  # the last lease brought something: another may bring more
        self._news = asyncio.Event()
        self._obey = ObeyingStep(
            ports,
            settings,
            self._keeper,
            agenda=self.agenda,
            sieve=self._sieve,
            sites=self._sites,
            open_leases=self._open,
            on_news=self._news.set,
        )
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = float("inf")
        self._stopped = ""

    @property
    def fetching(self) -> int:
        return self._slots.under_way

    @property
    def paused(self) -> bool:
        return self._obey.paused

    @property
    def held(self) -> bool:
        """A queue is so full that nothing more is leased for now."""
        return self._staffing is not None and self._staffing.hold_source

    @property
    def per_hour(self) -> int:
        """The budget that holds now; 0: none."""
        return self._obey.per_hour

    def stage_views(self) -> tuple[StageView, ...]:
        return self._staffing.views if self._staffing is not None else ()

    def stop(self, why: str = "interrupted") -> None:
        """End soon, in good order: what is under way is given back, what has gathered is committed."""
        self._stopped = self._stopped or why
        self._news.set()

    async def run(self) -> Report:
        """Until stopped, or until everything is visited if asked for once."""
        try:
            await self._run_steps()
            standing = await self._leasing.standing()
        finally:
            self._keeper.close()
        now = self._clock.now()
        stages = self._staffing.summary() if self._staffing is not None else ()
        return self.progress.report(standing, now, now - self._started, self._stopped, stages)

    async def _run_steps(self) -> None:
        try:
            await self._obey.begin()
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self.catalog.run())
                beside = [tasks.create_task(work) for work in self._beside()]
                await self._lease_until_done()
                await cancelled([*beside, *self._visiting])
                self.catalog.finish()  # last: what the visits have brought so far is kept
        except* LevadaError as group:
            raise group.exceptions[0] from None
        finally:
            await self._give_back()

    def _beside(self) -> Iterator[Coroutine[None, None, None]]:
        """What runs beside the visits, until these end."""
        if self._watched:
            yield self._watch()
        if not self._once:
            yield self._replan.run()
        if self._ports.orders is not None:
            yield self._obey.run()
        if self._staffing is not None:
            yield self._staffing.run(self._pump, lambda: self.paused)
        if self._board is not None:
            yield self._board.run(self)

    def _staffed(self, staff: Sequence[Post] | None) -> Staffing | None:
        """The stages in the order in which a page passes them, the slots first."""
        if staff is None:
            return None
        stages = self._settings.stages
        fetch = Post("fetch", self._slots, stage_rule("fetch", stages, self._slots.most))
        self._slots.resize(_SLOTS_AT_FIRST)
        return Staffing([fetch, *staff], self._clock, speed=self.speed, budget=stages.budget or None)

    # Leasing

    async def _lease_until_done(self) -> None:
        while not self._stopped:
            self._news.clear()
            room = self._room()
            if self.paused or self.held or (room <= 0 and self._open):
                self._more_there = True
                await news_or(self._news, self._clock.sleep(LOOK))
                continue
            leases = await self._leasing.lease(room)
            self._more_there = bool(leases)
            for lease in leases:
                if self._open.take(lease):
                    self.agenda.put(lease)
            self._pump()
            if leases:
                continue
            if not self._open and await self._leasing.is_done():
                self.stop("limit" if self._leasing.reached_limit else "done")
            else:
                self.standing = await self._leasing.standing()
                await news_or(self._news, self._clock.sleep(self._leasing.until_due(self.standing)))

    def _room(self) -> int:
        return self._leasing.room(len(self.agenda), len(self._open), self.per_hour)

    # Fetching

    def _pump(self) -> None:
        """Start every visit that may start now, and wake up when the next one may."""
        now = self._clock.now()
        while self._has_room():
            lease = self.agenda.take(now)
            if lease is None:
                break
            self._slots.begin()
            self._leasing.begun += 1
            self._start(self._visit(lease))
        for lease in self.agenda.stale():
            if renewed := self._open.renewed(lease):
                self.agenda.put(renewed)
            self._open.close(lease)
        if self._more_there and not (self.held or self.paused) and self._room():
            self._more_there = False
            self._news.set()
        self._arm(now)

    def _has_room(self) -> bool:
        """A slow parser slows the fetching down; bodies that wait count like those under way: memory is one."""
        return (
            not self._stopped
            and not self.paused
            and self._slots.free
            and self.fetching + self.parsing < 2 * self._slots.most
            and self._open.held_bytes < self._settings.fetch.max_buffered_bytes // 2
        )

    def _wait_for_slot(self) -> int:
        return self.agenda.startable(self._clock.now())

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
            self._leasing.begun -= 1
            self.agenda.postpone(lease, self._clock.now())
        else:
            await self._note_answer(fetched)
        self._slots.end()
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
            self._leasing.worth_waiting = max(self._leasing.worth_waiting, rest.until)
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
            pages, address = self._second_looks.after(settled)
            if pages or address:
                self._start(self._look_again(pages, address))
        self._listener(committed)
        self._pump()
        self._news.set()

    async def _listen(self, notices: Sequence[Notice]) -> None:
        if await self._hear(notices):
            self._news.set()

    async def _look_again(self, pages: Sequence[PageRecord], address: str | None) -> None:
        """As soon as may be: a crawl that goes once takes only what was due when it began."""
        await self._second_looks.take(pages, address, self._started)
        self._news.set()

    async def _watch(self) -> None:
        """Where the whole collection stands, for whoever looks."""
        while True:
            self.standing = await self._leasing.standing()
            await self._clock.sleep(_WATCH * self.speed)

    # Ending

    async def _give_back(self) -> None:
        left = self._open.drain()
        self.agenda.drain()
        if left:
            with suppress(StoreError):  # leases end by themselves; why the crawl ended is what counts
                await self._keeper.run(self._ports.frontier.release, left)
