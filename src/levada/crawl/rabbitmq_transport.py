"""RabbitMQ transport and its workers: pages go out, many in a message, and answers come back.

    scheduler --[fetch]--> fetch worker --[catalog]--> catalog worker --> store
        ^----------------[answers]-----'

A message is only a hint: it may be lost, repeated or late. A lease that ends without an answer counts as answered,
and the result of a worker is committed under its lease or not at all. Only the scheduler decides when a site is
fetched; therefore a worker returns the pages of a message that is delivered a second time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from levada.core.clock import first_of
from levada.core.errors import BrokerError, StoreAway
from levada.core.protocols import Clock
from levada.core.reasons import Reason
from levada.core.records import Lease, Response, VisitResult
from levada.core.reports import StageView
from levada.core.settings import Settings
from levada.core.site_rules.pace import SitePaces
from levada.core.site_rules.rules import SiteRules
from levada.core.site_rules.visit import NO_RULE, VisitRule
from levada.crawl.commits import CommitPorts, Commits
from levada.crawl.executor import StoreExecutor
from levada.crawl.hooks import PageHooks
from levada.crawl.link_filter import LinkFilter
from levada.crawl.messages import (
    FetchAnswer,
    FetchAnswers,
    QueueNames,
    ToFetch,
    ToStore,
    pack,
    read_message,
    without_body,
)
from levada.crawl.scheduler import Scheduler
from levada.crawl.sites import SiteLimits
from levada.crawl.transport import Transport, UnderWay
from levada.crawl.visits import Fetched, Visited, Visitor

log = logging.getLogger(__name__)

Publish = Callable[[str, bytes], Awaitable[bool]]
"""Put bytes into a queue: true when the broker has them, false if the queue is full."""

Send = Callable[[str, bytes], Awaitable[None]]
"""Put bytes into a queue; returns when the broker has them."""

_POLL_SECONDS = 0.5  # wall clock
_PAGES = 20  # in one message: they share its cost, and one worker can fetch them at once
_FLUSH_SECONDS = 0.1  # wall clock: after this, finished pages are sent although others are still under way
_SITE_SECONDS = 60.0  # how long the record of a site is cached
_encode = msgspec.msgpack.Encoder().encode


class RabbitmqTransport(Transport):
    """Sends pages to workers on any machine; `receive` gets their answers.

    Visits are counted when they are answered: only the workers know whether they are stored.
    """

    refill = 3  # pages of many sites wait at any time, so that a message has pages of several
    delay_from_answer = True  # a message may wait for any time: two requests are never closer than the delay

    def __init__(self, queues: QueueNames, publish: Publish) -> None:
        self.handed_out = 0
        self.views: tuple[StageView, ...] = ()
        self._queues = queues
        self._publish_bytes = publish
        self._admitting = 0  # pages that wait for the robots.txt of their site
        self._out: dict[int, Lease] = {}  # admitted and not yet answered, by token
        self._ready: list[Lease] = []  # those of them that are not sent yet
        self._refused: list[Fetched] = []
        self._news = asyncio.Event()
        self._held = self._ending = self._is_away = False

    def attach(self, scheduler: Scheduler) -> None:
        settings = scheduler.settings
        self._scheduler = scheduler
        self._clock = scheduler.ports.clock
        self._most_out = 4 * settings.fetch.slots
        self.poll = _POLL_SECONDS * settings.clock.speed  # workers elsewhere add pages without notice

    @property
    def held(self) -> bool:
        return self._held

    def hold(self, held: bool) -> None:
        """Stop or resume sending pages: the queues are full, or no longer."""
        self._held = held
        self._news.set()
        self._scheduler.look_again()

    def has_room(self) -> bool:
        return not self._held and self._admitting + len(self._out) + len(self._refused) < self._most_out

    def begin(self) -> None:
        self._admitting += 1

    def put_back(self) -> None:
        self._admitting -= 1

    async def visit(self, lease: Lease, refused: Reason | None) -> None:
        self._admitting -= 1
        if refused is None:
            self._out[lease.token] = lease
            self._ready.append(lease)
        else:
            fetched = Fetched(lease, self._clock.now(), refused=refused)
            self._refused.append(fetched)
            await self._answered(fetched)
        self._news.set()

    async def refuse(self, lease: Lease, reason: Reason) -> None:
        self._refused.append(Fetched(lease, self._clock.now(), refused=reason))
        self._scheduler.close(lease)
        self._news.set()

    def unsent(self, leases: list[Lease]) -> list[Lease]:
        """The leases that were not sent; a sent one stays with the worker that fetches it."""
        sent = self._out.keys() - {lease.token for lease in self._ready}
        return [lease for lease in leases if lease.token not in sent]

    async def run(self) -> None:
        while not self._ending:
            self._news.clear()
            sent = await self._send_refused() and await self._send_ready()
            self._forget_lapsed()
            self._scheduler.pump()  # there may be room for more
            nap = self._clock.sleep(self.poll)
            # While the queue is full or the broker is away, news does not help.
            await (first_of(self._news, nap) if sent else nap)

    def finish(self) -> None:
        self._ending = True
        self._news.set()

    def under_way(self) -> UnderWay:
        return UnderWay(fetching=len(self._out))

    def stage_views(self) -> tuple[StageView, ...]:
        return self.views

    async def receive(self, body: bytes, again: bool) -> None:
        """Take a message of answers; a repeated one changes nothing."""
        message = read_message(FetchAnswers, body, self._queues.collection)
        if message is None:
            return
        for answer in message.answers:
            lease = self._out.pop(answer.token, None)
            if lease is None:
                continue
            if answer.at is None:
                self._scheduler.returned(lease)
            else:
                await self._answered(_fetched(lease, answer, answer.at))
        self._scheduler.pump()

    async def _answered(self, fetched: Fetched) -> None:
        progress, response = self._scheduler.progress, fetched.response
        progress.visits += 1
        progress.fetched += response is not None
        reason = fetched.refused if response is None else response.reason
        if reason is not None:
            progress.failed[reason] += 1
        if not await self._scheduler.answered(fetched):
            self._scheduler.network.charge(fetched.lease.page)  # a worker has sent it to the store by now
        self._scheduler.close(fetched.lease)

    def _forget_lapsed(self) -> None:
        """Forget admitted pages whose lease has ended. A page that waits for robots.txt is not among them."""
        now = self._clock.now()
        lapsed = [lease for lease in self._out.values() if lease.expires_at <= now]
        for lease in lapsed:
            del self._out[lease.token]
            self._scheduler.lapsed(lease)
        if lapsed:
            self._ready = [lease for lease in self._ready if lease.token in self._out]

    async def _send_ready(self) -> bool:
        """Send the ready pages; False if the queue is full or the broker is away."""
        while self._ready and not (self._ending or self._scheduler.paused):
            part, self._ready = self._ready[:_PAGES], self._ready[_PAGES:]
            leases = tuple(map(self._within_hours, part))
            message = ToFetch(collection=self._queues.collection, leases=leases, rules=self._rules_of(part))
            if not await self._publish(self._queues.fetch, _encode(message)):
                self._ready = [*part, *self._ready]
                return False
            self.handed_out += len(part)
        return True

    def _within_hours(self, lease: Lease) -> Lease:
        """The lease as a worker gets it: one that ends when the active hours of its site do."""
        if not (paces := self._scheduler.paces):
            return lease
        closes_at = paces(lease.page.site).closes_at(self._clock.now())
        return lease if closes_at >= lease.expires_at else msgspec.structs.replace(lease, expires_at=closes_at)

    def _rules_of(self, leases: Sequence[Lease]) -> dict[int, VisitRule]:
        if not (rules := self._scheduler.rules):
            return {}
        found = ((lease.token, rules.visit_rule(lease.page.url)) for lease in leases)
        return {token: rule for token, rule in found if rule is not NO_RULE}

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
            done = await self._publish_bytes(queue, body)
        except BrokerError as error:
            if not self._is_away:
                log.warning("no pages are sent to the workers: %s", error)
            self._is_away = True
            return False
        if self._is_away:
            log.info("pages are sent to the workers again")
        self._is_away = False
        return done


def _fetched(lease: Lease, answer: FetchAnswer, at: float) -> Fetched:
    headers = (("retry-after", answer.retry_after),) if answer.retry_after else ()
    if not answer.status and answer.reason is None:
        return Fetched(lease, at, refused=Reason.INTERNAL)
    return Fetched(lease, at, Response(lease.page.url, answer.status, headers, reason=answer.reason))


class FetchWorker:
    """Fetches and parses the pages of a message, all at once."""

    def __init__(self, visitor: Visitor, clock: Clock, queues: QueueNames, send: Send) -> None:
        self._visitor = visitor
        self._clock = clock
        self._queues = queues
        self._send = send
        self.pages = 0

    async def __call__(self, body: bytes, again: bool) -> None:
        message = read_message(ToFetch, body, self._queues.collection)
        if message is None:
            return
        now = self._clock.now()
        valid = [] if again else [lease for lease in message.leases if lease.expires_at > now]
        tokens = {lease.token for lease in valid}
        await self._answer([FetchAnswer(lease.token, None) for lease in message.leases if lease.token not in tokens])
        pending = {
            asyncio.ensure_future(self._visit(lease, message.rules.get(lease.token, NO_RULE))) for lease in valid
        }
        try:
            while pending:
                done, pending = await asyncio.wait(pending, timeout=_FLUSH_SECONDS)
                await self._send_done([task.result() for task in done])
        finally:
            for task in pending:
                task.cancel()

    async def _visit(self, lease: Lease, rule: VisitRule) -> Visited:
        return without_body(await self._visitor.read(await self._visitor.fetch(lease, rule), rule))

    async def _send_done(self, visits: Sequence[Visited]) -> None:
        """Send visits to the catalog first: only what can no longer get lost counts as answered."""
        for body in pack(self._queues.collection, visits):
            await self._send(self._queues.catalog, body)
        await self._answer([_site_answer(visited.fetched) for visited in visits])
        self.pages += len(visits)

    async def _answer(self, answers: Sequence[FetchAnswer]) -> None:
        if answers:
            message = FetchAnswers(collection=self._queues.collection, answers=tuple(answers))
            await self._send(self._queues.answers, _encode(message))


def _site_answer(fetched: Fetched) -> FetchAnswer:
    response = fetched.response
    if response is None:
        return FetchAnswer(fetched.lease.token, fetched.at, reason=fetched.refused)
    wait = (response.header("retry-after") or "")[:200]
    return FetchAnswer(fetched.lease.token, fetched.at, response.status, response.reason, wait)


class CatalogWorker:
    """Decides visits and commits them under their leases. `run` must run at the same time."""

    def __init__(
        self,
        ports: CommitPorts,
        settings: Settings,
        collection: str,
        executor: StoreExecutor,
        hooks: PageHooks | None = None,
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._collection = collection
        self._executor = executor
        self._link_filter = LinkFilter(settings.crawl, (), rules=SiteRules(settings.site))
        self._commits = Commits(ports, settings, executor, self._link_filter, self._committed, hooks)
        self._limits = SiteLimits(SitePaces.of(settings), ports.policy)
        self._sites_until: dict[str, float] = {}
        self._waiting: dict[int, asyncio.Future[VisitResult | None]] = {}
        self.pages = 0

    async def run(self) -> None:
        await self._commits.run()

    def settings_changed(self, settings: Settings) -> None:
        """Decide by these from now on."""
        self._settings = settings
        self._link_filter.settings_changed(settings.crawl, SiteRules(settings.site))
        self._commits.settings_changed(settings)
        self._limits.paces = SitePaces.of(settings)

    async def __call__(self, body: bytes, again: bool) -> None:
        """Commit a message; returns when each visit is committed, or refused because another worker was first."""
        message = read_message(ToStore, body, self._collection)
        if message is None:
            return
        results = []
        for visited in message.visits:
            await self._learn_site(visited.fetched.lease.page.site)
            results.append(await self._commits.decide(visited))
        for committed in await asyncio.gather(*(self._commit(each) for each in results)):
            if committed is not None and (work := self._commits.follow_up(committed, self._ports.clock.now())):
                await work()

    async def _learn_site(self, site: str) -> None:
        """Read the scope and the delay of a site, which other processes may have changed."""
        now = self._ports.clock.now()
        if self._sites_until.get(site, 0.0) > now:
            return
        if len(self._sites_until) > 10_000:
            self._sites_until.clear()
        self._sites_until[site] = now + _SITE_SECONDS
        try:
            record = await self._executor.run(self._ports.sites.site, site)
        except StoreAway:  # its visits are not stored either
            return
        if record is None:
            return
        if record.dropped:
            self._link_filter.admitted.discard(site)
        elif record.admitted:
            self._link_filter.admitted.add(site)
        self._limits.learn(site, record.delay)

    def _commit(self, result: VisitResult) -> asyncio.Future[VisitResult | None]:
        """Commit a result; gives what was committed, which differs for a duplicate, or None.

        Two of one lease at the same time are one commit.
        """
        token = result.lease.token
        if token not in self._waiting:
            self._waiting[token] = asyncio.get_running_loop().create_future()
            self._commits.put(result)
        return self._waiting[token]

    def _committed(self, visits: Sequence[VisitResult], accepted: Sequence[bool]) -> None:
        for result, is_stored in zip(visits, accepted, strict=True):
            waiter = self._waiting.pop(result.lease.token, None)
            if waiter is not None and not waiter.done():
                waiter.set_result(result if is_stored else None)
            self.pages += is_stored
