"""Scheduler: which pages are visited, and when.

    frontier --lease--> politeness queue --> robots.txt --> transport --> answer --> the site's next turn

One scheduler decides for a whole collection, so politeness holds for all workers together. It leases pages, queues
them until their site may be fetched, checks robots.txt, and passes them to a `Transport`; the answer of a site
decides when it is fetched next. It executes control commands too. Any part may stop at any instant: pages without a
commit are leased again. An error of the store ends the crawl; a problem with a page never does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Coroutine, Iterable, Sequence
from contextlib import suppress

from levada.core.clock import first_of
from levada.core.errors import LevadaError, StoreAway, StoreError
from levada.core.reasons import Reason
from levada.core.records import CollectionStats, Lease, PageRecord, PlanSelection, Signals
from levada.core.settings import Settings
from levada.core.site_rules.pace import SitePaces, own_floor
from levada.core.site_rules.rules import SiteRules
from levada.crawl.checks import CheckStep
from levada.crawl.commands import CommandStep
from levada.crawl.commits import CrawlPorts
from levada.crawl.duplicates import pages_of_traps
from levada.crawl.executor import StoreExecutor
from levada.crawl.in_flight import InFlightLeases
from levada.crawl.link_filter import LinkFilter, page_kept_out
from levada.crawl.network import NetworkWatch
from levada.crawl.politeness import ClosedSite, PolitenessQueue
from levada.crawl.progress import CrawlProgress
from levada.crawl.robots import OutsideHours, RobotsCache, RobotsVerdict, named_sitemaps
from levada.crawl.sites import SITE_AWAY, Backoff, SiteCache, SiteHealth, SiteLimits
from levada.crawl.transport import Transport
from levada.crawl.visits import Fetched
from levada.pages.robots import RobotsRules

log = logging.getLogger(__name__)

_INSTANT = 1.0  # wall-clock seconds
_TICK = 0.02  # wall-clock seconds: nothing is polled more often
_RECOVERED_AT_ONCE = 500  # pages in a transaction
_MOST_AT_ONCE = 1_000  # pages in a lease: however many workers there are, it does not take long
_PATIENCE = 30.0  # wall-clock seconds to wait for a page that others hold


class Scheduler:
    """Schedules the visits of a collection; with `once`, until every page that was due at the start is visited.

    With `only`, those pages are visited once, whenever they are due, and no other. If none of them can be leased for
    a while, the crawl ends without those that are left. `alone` says that no other process leases pages of the
    collection meanwhile.
    """

    def __init__(
        self,
        ports: CrawlPorts,
        settings: Settings,
        transport: Transport,
        executor: StoreExecutor,
        progress: CrawlProgress,
        *,
        once: bool = False,
        max_pages: int | None = None,
        only: Sequence[str] | None = None,
        alone: bool = True,
    ) -> None:
        self.ports = ports
        self.settings = settings
        self.executor = executor
        self.progress = progress
        self.open = InFlightLeases()
        self.stopped = ""
        self._clock = ports.clock
        self._transport = transport
        self._cutoff = progress.started if once else None
        self._only = only
        self._max_pages = max_pages
        self._begun = 0  # visits
        self._worth_waiting = 0.0  # until then, a crawl with `once` waits for a site that sent a Retry-After
        self._speed = settings.clock.speed
        self._lease_seconds = settings.store.lease_seconds * max(1.0, self._speed)
        self.paces = SitePaces.of(settings)
        self._limits = SiteLimits(self.paces, ports.policy)
        self.politeness_queue = PolitenessQueue(
            self.paces,
            self._at_once(),
            per_hour=settings.budget.per_hour,
            # If time runs faster, one wall-clock second is many fetches of the budget, and none may be lost.
            instant=_INSTANT * (self._speed - 1.0),
        )
        sites = ports.sites.sites()
        admitted = (record.site for record in sites if record.admitted and not record.dropped)
        self.link_filter = LinkFilter(
            settings.crawl, admitted, lambda url: self._robots.closes(url), rules=SiteRules(settings.site)
        )
        self._sites = SiteCache(ports.sites, executor, settings.politeness, self.link_filter.admitted)
        self._robots = RobotsCache(
            ports.fetcher,
            self._sites,
            self._clock,
            settings.politeness,
            self._read_robots,
            lambda: self.rules,
            self._is_open,
        )
        self._more_there = True  # the last lease call returned pages: another may return more
        self._news = asyncio.Event()
        self._checks = CheckStep(
            ports,
            executor,
            self.politeness_queue,
            self._sites,
            self.open,
            lease_seconds=self._lease_seconds,
            delay=settings.politeness.delay,
            alone=alone,
            ask_robots_anew=self._robots.ask_anew,
            owns=transport.owns,
        )
        self.network = NetworkWatch(
            ports,
            executor,
            politeness_queue=self.politeness_queue,
            sites=self._sites,
            speed=self._speed,
            due_again=lambda: progress.started if once else self._clock.now(),
            ask_robots_anew=self._robots.ask_anew,
            on_down=self._release_waiting,
            rules=lambda: self.rules,
            is_open=self._is_open,
            on_change=self._news.set,
        )
        self._execute = CommandStep(
            ports,
            settings,
            executor,
            politeness_queue=self.politeness_queue,
            link_filter=self.link_filter,
            sites=self._sites,
            open_leases=self.open,
            checks=self._checks,
            on_news=self._news.set,
            on_settings=self.settings_changed,
        )
        self._turns: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = float("inf")
        transport.attach(self)

    @property
    def rules(self) -> SiteRules:
        """The rules of sites that hold now."""
        return self.link_filter.rules

    def own_floor(self, page: PageRecord) -> float:
        """The floor that the rule of its site sets for a page; 0 if none does."""
        return own_floor(self.rules, page.url, self.settings.revisit)

    @property
    def paused(self) -> bool:
        return self._execute.paused

    @property
    def per_hour(self) -> int:
        """The current budget; 0: none."""
        return self._execute.per_hour

    def stop(self, why: str = "interrupted") -> None:
        """End soon and in order: release the waiting leases, and commit or send what has gathered."""
        self.stopped = self.stopped or why
        self._news.set()

    async def run(self, beside: Iterable[Coroutine[None, None, None]] = ()) -> None:
        """Run until stopped or, with `once`, until every due page is visited."""
        try:
            await self._execute.begin()
            await self._checks.want(self._only or (), keep=False)
            async with asyncio.TaskGroup() as self._tasks:
                self._tasks.create_task(self._transport.run())
                work = (*beside, self._execute.run(), self.network.run(), *self._transport.beside())
                others = [self._tasks.create_task(each) for each in work]
                await self._lease_until_done()
                await _cancelled([*others, *self._turns])
                self._transport.finish()  # last, so that finished visits are kept
        except* LevadaError as group:
            raise group.exceptions[0] from None
        finally:
            await self._give_back()
            if self.network.down is not None:
                with suppress(StoreError):
                    await self.network.undo()

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run a task until the crawl ends; its error ends the crawl."""
        task = self.start_and_finish(work)
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)
        return task

    def start_and_finish(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run a task to its end, for which the end of the crawl waits; its error ends the crawl."""
        return self._tasks.create_task(work)

    def settings_changed(self, before: Settings, now: Settings) -> None:
        """Go on with other settings; called while the crawl runs, once the other ports work by them.

        Everything of the running crawl that depends on a setting takes note of its change here. What is not told
        here keeps the settings that the crawl was started with: `levada.core.configuration.following` lists what
        takes effect at once.
        """
        self.settings = now
        self._lease_seconds = now.store.lease_seconds * max(1.0, self._speed)
        before_paces, self.paces = self.paces, SitePaces.of(now)
        self.politeness_queue.set_limits(self.paces, self._at_once())
        self._checks.delay = now.politeness.delay
        self._sites.settings = now.politeness
        self._robots.settings_changed(now.politeness)
        if (now.guard, now.site) != (before.guard, before.site):
            self._robots.forget_troubles()
        self.link_filter.settings_changed(now.crawl, SiteRules(now.site))
        self._transport.settings_changed(now)
        self.progress.estimates = self.ports.policy.estimates
        if before_paces != self.paces:
            self._limits.paces = self.paces
            self.start(self._open_sites(before_paces))
        self.pump()
        self.look_again()

    def _at_once(self) -> int:
        """How many requests to one site may be under way."""
        polite = self.settings.politeness
        is_spaced = (polite.delay or self.paces) and self._transport.delay_from_answer
        return 1 if is_spaced else polite.max_concurrent

    def _is_open(self, site: str) -> bool:
        """Whether a site may be asked now, by its active hours."""
        now = self._clock.now()
        return not self.paces or self.paces(site).opens_at(now) <= now

    def look_again(self) -> None:
        """Ask the frontier again: there may be pages to lease."""
        self._news.set()

    async def stats(self) -> CollectionStats:
        return await self._count(self._clock.now())

    async def _count(self, at: float) -> CollectionStats:
        overview = self.ports.overview
        if overview is None:
            return await self.executor.run(self.ports.frontier.stats, at)
        return await overview.executor.run(overview.frontier.stats, at)

    # Leasing

    async def _lease_until_done(self) -> None:
        poll = self._transport.poll
        while not self.stopped:
            self._news.clear()
            if self._gives_up:
                self.stop("offline")
                continue
            if len(self._checks) and self._may_lease:
                await self._lease_checks()
            room = self._room()
            if not self._may_lease or (room <= 0 and self.open):
                self._more_there = True
                await first_of(self._news, self._clock.sleep(self._until_checks(poll)))
                continue
            leases = await self._lease(room)
            self._more_there = bool(leases)
            of_traps = await self._pages_of_traps(leases) if leases else ()
            await self._take(leases, self.politeness_queue.put, of_traps)
            self.pump()
            if leases:
                continue
            if not self.open and await self._is_done():
                self.stop("limit" if self._reached_limit else "done")
            else:
                await first_of(self._news, self._clock.sleep(await self._until_due()))

    @property
    def _may_lease(self) -> bool:
        return not (self.paused or self._transport.held or self.network.down is not None)

    @property
    def _gives_up(self) -> bool:
        """Whether this crawl should end because the network is down, and not wait for it."""
        return (self._cutoff is not None or self._only is not None) and self.network.gives_up

    async def _lease(self, room: int) -> list[Lease]:
        if self._only is None:
            now, seconds = self._clock.now(), self._lease_seconds
            return await self.executor.run(self._transport.lease(self.ports.frontier, now, room, seconds, self._cutoff))
        idle = not self.open and len(self._checks)
        if idle and self._clock.now() > self._checks.progress_at + _PATIENCE * self._speed:
            self.stop("limit")
        return []

    async def _pages_of_traps(self, leases: Sequence[Lease]) -> set[int]:
        return await self.executor.run(pages_of_traps, self.ports.frontier, leases, self.settings.crawl)

    async def _take(self, leases: Iterable[Lease], put: Callable[[Lease], None], of_traps: Container[int] = ()) -> None:
        """Take up leased pages: those that a rule keeps out now are not asked for, nor those of traps."""
        for lease in leases:
            if not self.open.take(lease):
                continue
            page = lease.page
            if self.rules and page_kept_out(self.rules, page):
                await self._transport.refuse(lease, Reason.RULE)
            elif page.id in of_traps:
                await self._transport.refuse(lease, Reason.TRAP)
            else:
                put(lease)

    async def _lease_checks(self) -> None:
        """Put the pages that a user wants now before all others."""
        await self._take(await self._checks.lease(), self.politeness_queue.put_first)
        self.pump()

    def _until_checks(self, poll: float) -> float:
        """Seconds until the frontier is asked again: not many if a user waits for pages."""
        return min(poll, 10 * _TICK * self._speed) if len(self._checks) and self._may_lease else poll

    def _room(self) -> int:
        """How many pages to lease: enough to stay busy, no more than can be fetched before a lease ends."""
        waiting, slots = len(self.politeness_queue), self._transport.slots
        if waiting >= self._transport.refill * slots or len(self.open) >= 6 * slots:
            return 0
        room = 4 * slots - waiting
        if self.per_hour:
            room = min(room, 1 + int(self.per_hour * self._lease_seconds / 3600) - waiting)
        if self._max_pages is not None:
            room = min(room, self._max_pages - self._begun - waiting)
        return max(0, min(room, _MOST_AT_ONCE))

    @property
    def _reached_limit(self) -> bool:
        return self._max_pages is not None and self._begun >= self._max_pages

    async def _is_done(self) -> bool:
        """Whether nothing is left that this crawl should wait for."""
        if self._reached_limit:
            return True
        if self._only is not None:
            return not len(self._checks)
        if self._cutoff is None or self._clock.now() <= self._worth_waiting:
            return False
        stats = await self._count(self._cutoff)
        return not stats.workable

    async def _until_due(self) -> float:
        """Seconds until something can be leased if there is no news."""
        poll, tick = self._until_checks(self._transport.poll), _TICK * self._speed
        if self._only is not None:
            return tick  # its site's turn comes soon
        if poll <= 25 * tick:
            return poll  # short enough: the next due time does not matter
        if self.ports.is_partial():
            return min(poll, 100 * tick)  # nobody tells when the shard is back
        next_due, now = (await self.stats()).next_due, self._clock.now()
        if next_due is not None and next_due <= now:
            return 25 * tick  # due, but not for this crawl
        return poll if next_due is None else min(poll, max(tick, next_due - now))

    async def _release_waiting(self) -> None:
        leases = [self.open.let_go(lease) for lease in self.politeness_queue.drain()]
        if leases:
            await self.executor.run(self.ports.frontier.release, leases)

    async def _recover(self, site: str) -> None:
        """Make the pages due that failed while their site could not be reached."""
        selection, after = PlanSelection(site, later_than=self._clock.now(), failing=True), 0
        while pages := await self.executor.run(self.ports.frontier.planned, selection, after, _RECOVERED_AT_ONCE):
            after, now = pages[-1].id, self._clock.now()
            due = [(page, Signals.NOTHING, now) for page in pages if page.reason in SITE_AWAY]
            await self.executor.run(self.ports.hints.bring_forward, due)
        self._news.set()

    async def _give_back(self) -> None:
        left = self._transport.unsent(self.open.drain())
        self.politeness_queue.drain()
        if left:
            with suppress(StoreError):  # leases end by themselves, and the first error matters
                await self.executor.run(self.ports.frontier.release, left)

    # Turns

    def pump(self) -> None:
        """Begin every turn that may begin now, and set a timer for the next one."""
        now = self._clock.now()
        while self._has_room():
            lease = self.politeness_queue.take(now)
            if lease is None:
                break
            self._transport.begin()
            self._begun += 1
            self.start(self._turn(lease))
        for lease in self.politeness_queue.stale():
            self.close(lease)
        for closed in self.politeness_queue.closed():
            self.start(self._close_site(closed))
        if self._more_there and self._may_lease and self._room():
            self._more_there = False
            self._news.set()
        self._arm(now)

    def _has_room(self) -> bool:
        return not (self.stopped or self.paused or self.network.down is not None) and self._transport.has_room()

    def _arm(self, now: float) -> None:
        ready = self.politeness_queue.next_ready()
        if ready is None or not self._has_room():
            return
        if self._alarm is not None and not self._alarm.done():
            if self._alarm_at <= ready:
                return
            self._alarm.cancel()
        self._alarm_at = ready
        self._alarm = self.start(self._ring(max(0.001, ready - now)))

    async def _ring(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._alarm = None
        self.pump()

    async def _turn(self, lease: Lease) -> None:
        """Take one page from the politeness queue to the transport."""
        if not self._transport.owns(lease.page.site):
            self._transport.put_back()
            await self.disowned(lease)
            return
        try:
            verdict = await self._verdict(lease)
        except StoreAway:  # the shard of this site: the lease ends there by itself
            self._transport.put_back()
            self._begun -= 1
            self.lapsed(lease)
            self.pump()
            return
        # The turn of the site was used for its robots.txt, or its hours have ended meanwhile.
        if verdict is None or (verdict.reason is None and (verdict.asked or not self._is_open(lease.page.site))):
            self._transport.put_back()
            self.returned(lease)
            self.pump()
        else:
            await self._transport.visit(lease, verdict.reason)

    async def _verdict(self, lease: Lease) -> RobotsVerdict | None:
        """What robots.txt says; None if the active hours of the site are over."""
        site, url = lease.page.site, lease.page.url
        try:
            verdict = await self._robots.verdict(url)
        except StoreError:
            raise
        except OutsideHours:
            return None
        except Exception:
            log.exception("reading the robots.txt for %s", url)
            return RobotsVerdict(Reason.INTERNAL)
        self.politeness_queue.set_delay(site, verdict.delay)
        self._limits.learn(site, verdict.delay)
        return verdict

    async def _read_robots(self, origin: str, rules: RobotsRules) -> None:
        if self.settings.crawl.sitemaps:
            found = named_sitemaps(origin, rules, self.link_filter)
            await self.executor.run(self.ports.frontier.add, found, [], self._clock.now())
            self._news.set()

    # Sites that several schedulers share

    def sites_lost(self, is_lost: Callable[[str], bool]) -> None:
        """Give back the pages that wait of these sites, and forget what is known of them."""
        held = [self.open.let_go(lease) for lease in self.politeness_queue.withdraw(is_lost)]
        self._sites.forget(is_lost)
        if held:
            self.start_and_finish(self._release(held))

    def sites_gained(self, is_gained: Callable[[str], bool]) -> None:
        """Ask these sites after their delay at the earliest."""
        self._sites.forget(is_gained)
        self.politeness_queue.start_anew(is_gained, self._clock.now())
        self.look_again()

    async def _release(self, leases: Sequence[Lease]) -> None:
        await self.executor.run(self.ports.frontier.release, leases)

    # How turns end

    async def answered(self, fetched: Fetched) -> bool:
        """Take the end of a visit or a refusal: it decides when the site is fetched next.

        False if it does not count, because the network is down.
        """
        site = fetched.lease.page.site
        counts, health = await self.network.counts(fetched), SiteHealth()
        if counts:
            with suppress(StoreAway):  # its visit is not stored either
                health = await self._sites.after(fetched)
        now = self._clock.now()
        due = now
        if self._transport.delay_from_answer and fetched.response is not None:
            due = fetched.at + self.politeness_queue.delay(site)
        if due > now:
            self.start(self._finish(site, due - now))
        else:
            self.politeness_queue.finished(site, now)
        if health.backoff is not None:
            await self._back_off(site, health.backoff)
        if health.recovered:
            self.start(self._recover(site))
        return counts

    async def put_back(self, lease: Lease) -> None:
        """Take back a page whose visit does not count; it is due as before."""
        self._begun -= 1
        await self.executor.run(self.ports.frontier.release, [self.open.let_go(lease)])
        self.pump()

    async def disowned(self, lease: Lease) -> None:
        """Give a page back whose turn began: another scheduler has its site now."""
        self.politeness_queue.finished(lease.page.site, self._clock.now())
        await self.put_back(lease)

    def returned(self, lease: Lease) -> None:
        """Take back a page that was not fetched: it comes next."""
        self._begun -= 1
        self.politeness_queue.postpone(lease, self._clock.now())

    def lapsed(self, lease: Lease) -> None:
        """Take the end of a lease without an answer: it counts as answered."""
        self.politeness_queue.finished(lease.page.site, self._clock.now())
        self.close(lease)

    def close(self, lease: Lease) -> None:
        """Close a lease. If its page was leased to this process again, it waits for another turn."""
        if renewed := self.open.renewed(lease):
            self.politeness_queue.put(renewed)
        self.open.close(lease)

    async def _finish(self, site: str, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self.politeness_queue.finished(site, self._clock.now())
        self.pump()

    async def _close_site(self, closed: ClosedSite) -> None:
        """Lease no page of a site until its active hours begin."""
        with suppress(StoreAway):  # then none of its pages is leased
            await self._sites.rest(closed.site, closed.until)
        held = [self.open.let_go(lease) for lease in closed.waiting]
        if held:
            await self.executor.run(self.ports.frontier.release, held)
        self._news.set()

    async def _open_sites(self, before: SitePaces) -> None:
        """Ask sites that rested by active hours which hold no more."""
        with suppress(StoreAway):
            await self._sites.wake(before, self.paces, self._clock.now())
        self._news.set()

    async def _back_off(self, site: str, backoff: Backoff) -> None:
        if backoff.was_asked_for and backoff.until - self._clock.now() <= self.settings.politeness.backoff:
            self._worth_waiting = max(self._worth_waiting, backoff.until)
        held = [self.open.let_go(lease) for lease in self.politeness_queue.hold(site, backoff.until)]
        if held:
            await self.executor.run(self.ports.frontier.release, held)
        self._news.set()


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
