"""Which pages are handed out to workers elsewhere, and when? One process decides, so politeness holds across all.

Pages are leased, wait for their site's turn, are checked against robots.txt, and go out, many in a message. Where
sites are asked with a delay, the next page of a site goes out no sooner than that after the answer to the one
before came: however long messages wait and whoever fetches them, two requests are never closer. An answer that
never comes counts as given when its lease ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine

import msgspec

from levada.errors import BrokerError, StoreError
from levada.flow.agenda import Agenda
from levada.flow.fetch import Fetched
from levada.flow.holding import OpenLeases
from levada.flow.messages import Answer, Answers, QueueNames, ToFetch, ToStore, read_message
from levada.flow.obeying import ObeyingStep
from levada.flow.parse import Visited
from levada.flow.robots import RobotsBook, Verdict
from levada.flow.settings import Settings
from levada.flow.sieve import LinkSieve
from levada.flow.sitebook import SiteBook, is_dropped
from levada.flow.sitemaps import named_sitemaps
from levada.flow.storekeeper import Storekeeper
from levada.flow.weather import Rest, Weather
from levada.pages.robots import RobotsRules
from levada.ports import Clock, Fetcher, Frontier, Orders, RevisitPolicy, Sites
from levada.reasons import Reason
from levada.records import Lease, Response

__all__ = ["Scheduler", "SchedulerPorts"]

log = logging.getLogger(__name__)

_LOOK = 0.5  # seconds of the wall between looks at the frontier, while nothing else happens
_PAGES = 20  # in one message
_MOST_SITES = 100_000  # whose delays are remembered
_FULL_PAUSE = 0.5  # seconds of the wall after a queue was full or the broker away
_encode = msgspec.msgpack.Encoder().encode


class SchedulerPorts(msgspec.Struct, frozen=True):
    """`publish` is true when the broker has the message, false if the queue is full."""

    clock: Clock
    frontier: Frontier
    sites: Sites
    fetcher: Fetcher
    publish: Callable[[str, bytes], Awaitable[bool]]
    policy: RevisitPolicy
    orders: Orders | None = None


class Scheduler:
    """`on_answer` hears of every visit that was made or refused."""

    def __init__(
        self,
        ports: SchedulerPorts,
        settings: Settings,
        queues: QueueNames,
        keeper: Storekeeper,
        on_answer: Callable[[Fetched], None] = lambda fetched: None,
    ) -> None:
        self._ports = ports
        self._clock = ports.clock
        self._settings = settings
        self._queues = queues
        self._keeper = keeper
        self._on_answer = on_answer
        polite, budget = settings.politeness, settings.budget
        self._delay = polite.delay
        self.agenda = Agenda(
            polite.delay,
            1 if polite.delay else polite.at_once,
            per_hour=budget.per_hour,
            per_site_per_hour=budget.per_site_per_hour,
            instant=settings.clock.speed - 1.0,
        )
        sites = ports.sites.sites()
        admitted = (record.site for record in sites if record.admitted and not is_dropped(record))
        self._sieve = LinkSieve(settings.crawl, admitted, lambda url: self._robots.closes(url))
        self._sites = SiteBook(ports.sites, keeper, polite, self._sieve.admitted)
        self._weather = Weather(self._sites)
        self._robots = RobotsBook(ports.fetcher, self._sites, self._clock, polite, self._read_robots)
        self._delays: dict[str, float] = {}
        self._out: dict[int, Lease] = {}  # taken from the agenda and not yet answered, by token
        self._admitting: set[int] = set()  # of these, those that wait for the robots.txt of their site
        self._ready: list[Lease] = []
        self._refused: list[Fetched] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._held = self._stopped = self._is_away = False
        self._trouble: BaseException | None = None
        self._obey = ObeyingStep(
            ports,
            settings,
            keeper,
            agenda=self.agenda,
            sieve=self._sieve,
            sites=self._sites,
            open_leases=OpenLeases(),  # none: what is out is with the workers
            on_news=self._news.set,
        )
        self.handed_out = 0

    @property
    def paused(self) -> bool:
        return self._obey.paused

    @property
    def per_hour(self) -> int:
        """The budget that holds now; 0: none."""
        return self._obey.per_hour

    @property
    def held(self) -> bool:
        return self._held

    def hold(self, held: bool) -> None:
        """Hand out nothing for a while: the queues are full enough."""
        self._held = held
        self._news.set()

    def stop(self) -> None:
        self._stopped = True
        self._news.set()

    async def run(self) -> None:
        """Until stopped; what waits is given back, what is out stays leased to whoever fetches it."""
        try:
            await self._obey.begin()
            self._start(self._obey.run())
            while not self._stopped:
                self._news.clear()
                await self._lease()
                self._take()
                sent = await self._send_refused() and await self._send_ready()
                self._forget_lapsed()
                await self._wait(_FULL_PAUSE if not sent else self._until_ready())
        finally:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            left = [*self.agenda.drain(), *self._ready]
            if left:
                await self._keeper.run(self._ports.frontier.release, left)
        if self._trouble is not None:
            raise self._trouble

    # Leasing and handing out

    async def _lease(self) -> None:
        slots = self._settings.fetch.slots
        room = min(4 * slots - len(self.agenda), 8 * slots - len(self.agenda) - len(self._out))
        if room < slots or self._held or self.paused:
            return
        seconds = self._settings.store.lease_seconds * max(1.0, self._settings.clock.speed)
        if self.per_hour:  # no more than can be asked for before a lease ends
            room = min(room, 1 + int(self.per_hour * seconds / 3600) - len(self.agenda))
        for lease in await self._keeper.run(self._ports.frontier.lease, self._clock.now(), room, seconds):
            self.agenda.put(lease)

    def _take(self) -> None:
        """Pages whose site may be asked now; robots.txt is asked for meanwhile, where it is not known."""
        while not (self._held or self.paused) and len(self._out) < 4 * self._settings.fetch.slots:
            lease = self.agenda.take(self._clock.now())
            if lease is None:
                break
            self._out[lease.token] = lease
            self._admitting.add(lease.token)
            self._start(self._admit(lease))
        self.agenda.stale()  # somebody else may have them; the frontier hands them out anew

    async def _admit(self, lease: Lease) -> None:
        site = lease.page.site
        verdict = await self._verdict(lease.page.url)
        self._admitting.discard(lease.token)
        self.agenda.set_delay(site, verdict.delay)
        if len(self._delays) >= _MOST_SITES:
            self._delays.clear()
        self._delays[site] = max(self._delay, verdict.delay or 0.0)
        if verdict.reason is not None:
            self._out.pop(lease.token, None)
            self._refused.append(Fetched(lease, self._clock.now(), refused=verdict.reason))
            await self._note(self._refused[-1])
        elif verdict.asked:  # the site's turn was spent on its robots.txt
            self._out.pop(lease.token, None)
            self.agenda.postpone(lease, self._clock.now())
        else:
            self._ready.append(lease)
        self._news.set()

    async def _verdict(self, url: str) -> Verdict:
        try:
            return await self._robots.verdict(url)
        except StoreError:
            raise
        except Exception:
            log.exception("asking for the robots.txt of %s", url)
            return Verdict(Reason.INTERNAL)

    async def _send_ready(self) -> bool:
        """False if some had to stay: the queue is full, or nobody takes anything."""
        while self._ready and not (self._stopped or self.paused):
            part, self._ready = self._ready[:_PAGES], self._ready[_PAGES:]
            message = ToFetch(collection=self._queues.collection, leases=tuple(part))
            if not await self._publish(self._queues.fetch, _encode(message)):
                self._ready = [*part, *self._ready]
                return False
            self.handed_out += len(part)
        return True

    async def _send_refused(self) -> bool:
        while self._refused:
            part = self._refused[:_PAGES]
            visits = tuple(Visited(fetched) for fetched in part)
            body = _encode(ToStore(collection=self._queues.collection, visits=visits))
            if not await self._publish(self._queues.catalog, body):
                return False
            del self._refused[: len(part)]
        return True

    async def _publish(self, queue: str, body: bytes) -> bool:
        try:
            done = await self._ports.publish(queue, body)
        except BrokerError as error:
            if not self._is_away:
                log.warning("no page is handed out: %s", error)
            self._is_away = True
            return False
        if self._is_away:
            log.info("pages are handed out again")
        self._is_away = False
        return done

    # Answers

    async def hear(self, body: bytes, again: bool) -> None:
        """A message of answers; the same one twice does nothing."""
        message = read_message(Answers, body, self._queues.collection)
        if message is None:
            log.warning("a message that is none of ours was dropped")
            return
        for answer in message.answers:
            lease = self._out.pop(answer.token, None)
            if lease is None:
                continue
            if answer.at is None:
                self._not_asked(lease)
            else:
                await self._note(_fetched(lease, answer, answer.at))
        self._news.set()

    def _not_asked(self, lease: Lease) -> None:
        now = self._clock.now()
        if lease.expires_at > now:
            self.agenda.postpone(lease, now)
        else:
            self.agenda.finished(lease.page.site, now)

    async def _note(self, fetched: Fetched) -> None:
        self._on_answer(fetched)
        site = fetched.lease.page.site
        rest = await self._weather.after(fetched)
        if rest is not None:
            await self._rest(site, rest)
        was_asked = fetched.response is not None
        due = fetched.at + self._delays.get(site, self._delay) if was_asked else self._clock.now()
        self._start(self._finish(site, due))

    async def _finish(self, site: str, due: float) -> None:
        """The site may be asked again, once its delay has passed since the answer."""
        wait = due - self._clock.now()
        if wait > 0:
            await self._clock.sleep(wait)
        self.agenda.finished(site, self._clock.now())
        self._news.set()

    async def _rest(self, site: str, rest: Rest) -> None:
        held = self.agenda.hold(site, rest.until)
        if held:
            await self._keeper.run(self._ports.frontier.release, held)

    def _forget_lapsed(self) -> None:
        """A turn that is spent on a robots.txt ends with it, however long that takes."""
        now = self._clock.now()
        lapsed = {token for token, lease in self._out.items() if lease.expires_at <= now}
        for token in lapsed - self._admitting:
            self.agenda.finished(self._out.pop(token).page.site, now)
        self._ready = [lease for lease in self._ready if lease.token in self._out]

    async def _read_robots(self, origin: str, rules: RobotsRules) -> None:
        if self._settings.crawl.sitemaps:
            found = named_sitemaps(origin, rules, self._sieve)
            await self._keeper.run(self._ports.frontier.add, found, [], self._clock.now())

    # Waiting

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """An error of the store ends the scheduler: nothing can be done without it."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._trouble = self._trouble or error
            self.stop()

    def _until_ready(self) -> float:
        """Seconds of the wall until something can be done without news."""
        ready = self.agenda.next_ready()
        if ready is None or self._held or self.paused:
            return _LOOK
        return min(_LOOK, max(0.005, (ready - self._clock.now()) / self._settings.clock.speed))

    async def _wait(self, seconds: float) -> None:
        nap = asyncio.ensure_future(self._clock.sleep(seconds * self._settings.clock.speed))
        news = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait((nap, news), return_when=asyncio.FIRST_COMPLETED)
        finally:
            nap.cancel()
            news.cancel()


def _fetched(lease: Lease, answer: Answer, at: float) -> Fetched:
    headers = (("retry-after", answer.retry_after),) if answer.retry_after else ()
    if not answer.status and answer.reason is None:
        return Fetched(lease, at, refused=Reason.INTERNAL)
    return Fetched(lease, at, Response(lease.page.url, answer.status, headers, reason=answer.reason))
