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
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import suppress
from math import ceil
from typing import cast

import msgspec

from levada.core.clock import first_of
from levada.core.errors import BrokerError, StoreAway
from levada.core.protocols import Frontier
from levada.core.reasons import Reason
from levada.core.records import Lease, Response
from levada.core.reports import StageView
from levada.core.settings import Settings
from levada.core.site_rules.visit import NO_RULE, VisitRule
from levada.crawl.distributed.messages import FetchAnswer, FetchAnswers, QueueNames, ToFetch, ToStore, read_message
from levada.crawl.distributed.ownership import HOLD, SiteOwnership
from levada.crawl.scheduler import Scheduler
from levada.crawl.transport import Transport, UnderWay
from levada.crawl.visits import Fetched, Visited
from levada.store.base import Sliced
from levada.store.ownership import SLICES, slice_of

log = logging.getLogger(__name__)

Publish = Callable[[str, bytes], Awaitable[bool]]
"""Put bytes into a queue: true when the broker has them, false if the queue is full."""

_POLL_SECONDS = 0.5  # wall clock
_ORPHAN_SECONDS = 15.0  # wall clock: so long visits of a scheduler that is gone may take to be stored
_GATHER_SECONDS = 0.03  # wall clock: so long a page that may be sent waits for others
_PAGES = 20  # in one message: they share its cost, and one worker can fetch them at once
_encode = msgspec.msgpack.Encoder().encode


class RabbitmqTransport(Transport):
    """Sends pages to workers on any machine; `receive` gets their answers.

    Visits are counted when they are answered: only the workers know whether they are stored. Where several schedulers
    share the sites, `ownership` says which are ours, and the answers come to a queue of our own.
    """

    refill = 3  # pages of many sites wait at any time, so that a message has pages of several
    delay_from_answer = True  # a message may wait for any time: two requests are never closer than the delay

    def __init__(self, queues: QueueNames, publish: Publish, ownership: SiteOwnership | None = None) -> None:
        self.handed_out = 0
        self.answers = queues.answers if ownership is None else queues.answers_to(ownership.name)
        self._ownership = ownership
        self._workers = 1.0
        self.views: tuple[StageView, ...] = ()
        self._queues = queues
        self._publish_bytes = publish
        self._admitting = 0  # pages that wait for the robots.txt of their site
        self._out: dict[int, Lease] = {}  # admitted and not yet answered, by token
        self._ready: list[Lease] = []  # those of them that are not sent yet
        self._refused: list[Fetched] = []
        self._news = asyncio.Event()
        self._held = self._ending = self._is_away = self._told_of_clock = False

    def attach(self, scheduler: Scheduler) -> None:
        settings = scheduler.settings
        self._scheduler = scheduler
        self._clock = scheduler.ports.clock
        self._slots_each = settings.fetch.slots
        self.set_workers(1)
        self._speed = settings.clock.speed
        if self._ownership is not None:
            scheduler.politeness_queue.since = self._ownership.since
        self.poll = _POLL_SECONDS * settings.clock.speed  # workers elsewhere add pages without notice

    def settings_changed(self, settings: Settings) -> None:
        """Workers elsewhere keep theirs."""

    def set_workers(self, workers: float) -> None:
        """Note how many fetch workers there are for this scheduler's pages: so many more may be on their way."""
        self._workers = workers
        share = self._ownership.share if self._ownership is not None else 1.0
        self.slots = max(1, ceil(self._slots_each * max(1.0, workers) * share))
        self._most_out = max(4 * self._slots_each, 2 * self.slots)

    @property
    def held(self) -> bool:
        return self._held

    def hold(self, held: bool) -> None:
        """Stop or resume sending pages: the queues are full, or no longer."""
        self._held = held
        self._news.set()
        self._scheduler.look_again()

    def owns(self, site: str) -> bool:
        return self._ownership is None or self._ownership.owns(site)

    def lease(
        self, frontier: Frontier, now: float, limit: int, seconds: float, due: float | None
    ) -> Callable[[], list[Lease]]:
        if self._ownership is None:
            return super().lease(frontier, now, limit, seconds, due)
        slices = self._ownership.slices

        def leased() -> list[Lease]:
            if not slices:
                return []
            cast(Sliced, frontier).own(slices if len(slices) < SLICES else None)
            return frontier.lease(now, limit, seconds, due)

        return leased

    # What a change of owners means, for `SiteOwnership`

    def sites_gained(self, slices: Collection[int]) -> None:
        self._scheduler.sites_gained(lambda site: slice_of(site) in slices)

    def sites_lost(self, slices: Collection[int]) -> None:
        self._scheduler.sites_lost(lambda site: slice_of(site) in slices)

    def slices_under_way(self) -> set[int]:
        queue = self._scheduler.politeness_queue
        return {slice_of(site) for site, _, under_way in queue.lengths() if under_way}

    def share_changed(self, share: float) -> None:
        self._scheduler.politeness_queue.set_share(share, self._clock.now())
        self.set_workers(self._workers)
        self._news.set()

    def orphans(self, slices: Collection[int]) -> None:
        latest = self._clock.now() + _ORPHAN_SECONDS * self._speed
        self._scheduler.start(self._end_leases_by(frozenset(slices), latest))

    async def _end_leases_by(self, slices: frozenset[int], latest: float) -> None:
        frontier = cast(Sliced, self._scheduler.ports.frontier)
        with suppress(StoreAway):  # the leases on a shard that is away end by themselves
            await self._scheduler.executor.run(frontier.end_leases_by, slices, latest)

    def beside(self) -> Iterator[Coroutine[None, None, None]]:
        if self._ownership is not None:
            yield self._ownership.run(self)

    @property
    def leads(self) -> bool:
        """Whether this scheduler does what one of several has to do: the one that owns the first slice."""
        return self._ownership is None or 0 in self._ownership.slices

    @property
    def may_leave(self) -> bool:
        """Whether nothing that was sent can still be fetched."""
        return not self._out or len(self._ready) == len(self._out)

    def has_room(self) -> bool:
        if self._ownership is not None and not self._ownership.remaining:
            return False
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
                self._note_clock(answer.here)
                self._scheduler.returned(lease)
            else:
                await self._answered(_fetched(lease, answer, answer.at))
        self._scheduler.pump()

    def _note_clock(self, here: float) -> None:
        """Say it once if a worker's clock is so far ahead of ours that everything comes too late."""
        ahead = (here - self._clock.now()) / self._speed
        if ahead > HOLD / 2 and not self._told_of_clock:
            self._told_of_clock = True
            log.warning("a fetch worker gives pages back as late: its clock is %.0f s ahead of this one", ahead)

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
        if 0 < len(self._ready) < _PAGES:
            await self._clock.sleep(_GATHER_SECONDS * self._speed)  # turns come in groups, as answers do
        while self._ready and not (self._ending or self._scheduler.paused):
            await self._give_up_lost()
            until = 0.0
            if self._ownership is not None:
                if not (remaining := self._ownership.remaining):
                    return False
                until = self._clock.now() + remaining * self._speed
            part, self._ready = self._ready[:_PAGES], self._ready[_PAGES:]
            if not part:
                return True
            leases = tuple(map(self._within_hours, part))
            rules, answers = self._rules_of(part), "" if self._ownership is None else self.answers
            message = ToFetch(
                collection=self._queues.collection, leases=leases, rules=rules, answers=answers, until=until
            )
            if not await self._publish(self._queues.fetch, _encode(message)):
                self._ready = [*part, *self._ready]
                return False
            self.handed_out += len(part)
        return True

    async def _give_up_lost(self) -> None:
        """Give back the pages of sites that another scheduler owns now."""
        lost = [lease for lease in self._ready if not self.owns(lease.page.site)]
        if lost and self._ownership is not None and self._ownership.remaining:
            tokens = {lease.token for lease in lost}
            self._ready = [lease for lease in self._ready if lease.token not in tokens]
            for lease in lost:
                del self._out[lease.token]
                await self._scheduler.disowned(lease)

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
