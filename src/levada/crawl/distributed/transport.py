"""Transport of a scheduler whose pages are visited on other machines: many go out in a message, answers come back.

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
from math import ceil

import msgspec

from levada.core.clock import first_of
from levada.core.errors import BrokerError
from levada.core.reasons import Reason
from levada.core.records import Lease, Response
from levada.core.reports import StageView
from levada.core.settings import Settings
from levada.core.site_rules.visit import NO_RULE, VisitRule
from levada.crawl.distributed.messages import FetchAnswer, FetchAnswers, QueueNames, ToFetch, ToStore, read_message
from levada.crawl.scheduler import Scheduler
from levada.crawl.transport import Transport, UnderWay
from levada.crawl.visits import Fetched, Visited

log = logging.getLogger(__name__)

Publish = Callable[[str, bytes], Awaitable[bool]]
"""Put bytes into a queue: true when the broker has them, false if the queue is full."""

_POLL_SECONDS = 0.5  # wall clock
_PAGES = 20  # in one message: they share its cost, and one worker can fetch them at once
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
        self._slots_each = settings.fetch.slots
        self.set_workers(1)
        self.poll = _POLL_SECONDS * settings.clock.speed  # workers elsewhere add pages without notice

    def settings_changed(self, settings: Settings) -> None:
        """Workers elsewhere keep theirs."""

    def set_workers(self, workers: float) -> None:
        """Note how many fetch workers there are for this scheduler's pages: so many more may be on their way."""
        self.slots = max(1, ceil(self._slots_each * max(1.0, workers)))
        self._most_out = max(4 * self._slots_each, 2 * self.slots)

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
