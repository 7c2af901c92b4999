"""The steps of the crawl as workers beside each other: pages to fetch in, visits out; visits in, one commit out.

    scheduler --[fetch]--> FetchWorker --[catalog]--> CatalogWorker --> store
        ^----------------[answers]-----'

Nobody here decides when a site is asked: that is the scheduler's. A message that is handed out a second time is not
acted on, but given back to it, for it alone knows whose turn it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from levada.errors import LevadaError
from levada.flow.catalog import CatalogStep
from levada.flow.duplicates import DuplicateBook
from levada.flow.fetch import Fetched, FetchStep
from levada.flow.hearing import HearingStep
from levada.flow.messages import Answer, Answers, QueueNames, ToFetch, ToStore, pack, read_message, without_body
from levada.flow.parse import ParseStep, Visited
from levada.flow.second_looks import SecondLooks
from levada.flow.settings import Settings
from levada.flow.settling import Settler
from levada.flow.sieve import LinkSieve
from levada.flow.sitebook import is_dropped
from levada.flow.storekeeper import Storekeeper
from levada.ports import Clock, Fetcher, Frontier, Notices, Parser, RevisitPolicy, Sites
from levada.reasons import Reason
from levada.records import Lease, PageState, Settled

__all__ = ["CatalogPorts", "CatalogWorker", "FetchWorker", "Send"]

log = logging.getLogger(__name__)

Send = Callable[[str, bytes], Awaitable[None]]
"""Put these bytes into a queue; returns when the broker has them."""

_FLUSH = 0.1  # seconds of the wall after which what is done is passed on, though other pages still come
_SITE_SECONDS = 60.0  # how long what the store knows of a site is believed


class FetchWorker:
    """Asks sites for the pages of a message, all at once, and reads what they answer."""

    def __init__(
        self,
        fetcher: Fetcher,
        parser: Parser,
        policy: RevisitPolicy,
        clock: Clock,
        agent: str,
        queues: QueueNames,
        send: Send,
    ) -> None:
        self._fetch = FetchStep(fetcher, clock, policy)
        self._parse = ParseStep(parser, agent)
        self._clock = clock
        self._queues = queues
        self._send = send
        self.pages = 0

    async def __call__(self, body: bytes, again: bool) -> None:
        order = read_message(ToFetch, body, self._queues.collection)
        if order is None:
            log.warning("a message that is none of ours was dropped")
            return
        now = self._clock.now()
        asked = [] if again else [lease for lease in order.leases if lease.expires_at > now]
        tokens = {lease.token for lease in asked}
        await self._tell([Answer(lease.token, None) for lease in order.leases if lease.token not in tokens])
        pending = {asyncio.ensure_future(self._visit(lease)) for lease in asked}
        try:
            while pending:
                done, pending = await asyncio.wait(pending, timeout=_FLUSH)
                await self._pass_on([task.result() for task in done])
        finally:
            for task in pending:
                task.cancel()

    async def _visit(self, lease: Lease) -> Visited:
        try:
            return without_body(await self._parse(await self._fetch(lease)))
        except LevadaError:
            raise  # the parser itself does not work: that is no page's fault
        except Exception:
            log.exception("fetching %s", lease.page.url)
            return Visited(Fetched(lease, self._clock.now(), refused=Reason.INTERNAL))

    async def _pass_on(self, visits: Sequence[Visited]) -> None:
        """To the catalog first: only what cannot get lost any more counts as answered."""
        for body in pack(self._queues.collection, visits):
            await self._send(self._queues.catalog, body)
        await self._tell([_answer(visited.fetched) for visited in visits])
        self.pages += len(visits)

    async def _tell(self, answers: Sequence[Answer]) -> None:
        if answers:
            message = Answers(collection=self._queues.collection, answers=tuple(answers))
            await self._send(self._queues.answers, msgspec.msgpack.encode(message))


def _answer(fetched: Fetched) -> Answer:
    response = fetched.response
    if response is None:
        return Answer(fetched.lease.token, fetched.at, reason=fetched.refused)
    wait = (response.header("retry-after") or "")[:200]
    return Answer(fetched.lease.token, fetched.at, response.status, response.reason, wait)


class CatalogPorts(msgspec.Struct, frozen=True):
    clock: Clock
    frontier: Frontier
    sites: Sites
    notices: Notices
    policy: RevisitPolicy


class CatalogWorker:
    """Decides what visits mean, and commits them under their leases. `run` it beside."""

    def __init__(self, ports: CatalogPorts, settings: Settings, collection: str, keeper: Storekeeper) -> None:
        self._ports = ports
        self._settings = settings
        self._collection = collection
        self._keeper = keeper
        self._sieve = LinkSieve(settings.crawl, ())
        self._settler = Settler(settings, ports.policy, self._sieve, DuplicateBook(settings.crawl))
        self._second_looks = SecondLooks(ports.frontier, ports.notices, keeper, self._settler.stand_ins)
        self._hear = HearingStep(ports.notices, ports.policy, keeper)
        self._step = CatalogStep(ports.frontier, keeper, self._sieve, ports.clock, settings, self._settled)
        self._sites_until: dict[str, float] = {}
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self.pages = 0

    async def run(self) -> None:
        await self._step.run()

    def finish(self) -> None:
        self._step.finish()

    async def __call__(self, body: bytes, again: bool) -> None:
        """Returns when all of the message is committed, or refused because somebody else had committed it."""
        message = read_message(ToStore, body, self._collection)
        if message is None:
            log.warning("a message that is none of ours was dropped")
            return
        settled = [await self._decided(visited) for visited in message.visits]
        accepted = await asyncio.gather(*(self._committed(each) for each in settled))
        for each, is_stored in zip(settled, accepted, strict=True):
            if is_stored:
                await self._after(each)

    async def _decided(self, visited: Visited) -> Settled:
        fetched = visited.fetched
        await self._know(fetched.lease.page.site)
        try:
            canonical = visited.parsed.canonical if visited.parsed is not None else None
            rival = None
            if canonical and canonical != fetched.lease.page.url:
                rival = await self._keeper.run(self._ports.frontier.page, canonical)
            return self._settler.settle(visited, rival)
        except LevadaError:
            raise
        except Exception:
            log.exception("settling %s", fetched.lease.page.url)
            return self._settler.trouble(fetched.lease, fetched.at, Reason.INTERNAL)

    async def _know(self, site: str) -> None:
        """Whether links may stay there, and how often it may be asked: others may have learnt that just now."""
        now = self._ports.clock.now()
        if self._sites_until.get(site, 0.0) > now:
            return
        if len(self._sites_until) > 10_000:
            self._sites_until.clear()
        self._sites_until[site] = now + _SITE_SECONDS
        record = await self._keeper.run(self._ports.sites.site, site)
        if record is not None and is_dropped(record):
            self._sieve.admitted.discard(site)  # dropped
        elif record is not None and record.admitted:
            self._sieve.admitted.add(site)
        if record is not None and record.delay and record.delay > self._settings.politeness.delay:
            self._ports.policy.restrain(site, 1.0 / record.delay)

    def _committed(self, settled: Settled) -> asyncio.Future[bool]:
        """The same lease twice at the same time is one commit."""
        token = settled.lease.token
        if token not in self._waiting:
            self._waiting[token] = asyncio.get_running_loop().create_future()
            self._step.put(settled)
        return self._waiting[token]

    def _settled(self, visits: Sequence[Settled], accepted: Sequence[bool]) -> None:
        for settled, is_stored in zip(visits, accepted, strict=True):
            waiter = self._waiting.pop(settled.lease.token, None)
            if waiter is not None and not waiter.done():
                waiter.set_result(is_stored)
            self.pages += is_stored

    async def _after(self, settled: Settled) -> None:
        if settled.state is not PageState.LIVE:
            self._ports.policy.beliefs.forget(settled.lease.page)
        if settled.notices:
            await self._hear(settled.notices)
        await self._second_looks.take(*self._second_looks.after(settled), self._ports.clock.now())
