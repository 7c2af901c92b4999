"""Fetch worker: keeps many pages of many messages under way, and sends on what is finished."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from math import inf
from typing import NamedTuple

import msgspec

from levada.core.errors import BrokerAway
from levada.core.protocols import Clock
from levada.core.records import Lease
from levada.core.site_rules.visit import NO_RULE, VisitRule
from levada.crawl.distributed.messages import (
    MOST_PAGES,
    FetchAnswer,
    FetchAnswers,
    QueueNames,
    ToFetch,
    pack,
    read_message,
    without_body,
)
from levada.crawl.visits import Visited, Visitor

Send = Callable[[str, bytes], Awaitable[None]]
"""Put bytes into a queue; returns when the broker has them."""

_FLUSH_SECONDS = 0.1  # wall clock: so long the first finished page waits for others
_FLUSH_PAGES = 50  # so many do not wait
_AGAIN_SECONDS = 0.5  # wall clock: the pause before another try to send
_encode = msgspec.msgpack.Encoder().encode


class FetchWorker:
    """Fetches and parses pages, at most `slots` exchanges at once. `run` must run at the same time.

    A call takes one message and returns when all of its pages are sent on or given back; any number of calls may be
    under way. Up to twice as many pages as slots are fetched, parsed or wait to be sent, and at most about
    `most_bytes` of them are held: a slow parser or a full queue slows the fetching down. Pages that wait for a slot
    when the worker is told to stop are given back.
    """

    def __init__(
        self,
        visitor: Visitor,
        clock: Clock,
        queues: QueueNames,
        send: Send,
        *,
        slots: int = 64,
        most_bytes: int = 64 << 20,
        speed: float = 1.0,
    ) -> None:
        self.pages = 0
        self._visitor = visitor
        self._clock = clock
        self._queues = queues
        self._send = send
        self._slots = slots
        self._pause, self._pause_again = _FLUSH_SECONDS * speed, _AGAIN_SECONDS * speed
        self._exchanges, self._places = asyncio.Semaphore(slots), asyncio.Semaphore(2 * slots)
        self._most_bytes = most_bytes
        self._bytes = 0
        self._fewer_bytes = asyncio.Event()
        self._under_way = 0
        self._finished: list[_Ended] = []
        self._news = asyncio.Event()
        self._stopping = False

    @property
    def used(self) -> float:
        """The share of the worker that is in use now."""
        return min(1.0, self._under_way / self._slots)

    def stop(self) -> None:
        """Begin no other page."""
        self._stopping = True

    async def __call__(self, body: bytes, again: bool) -> None:
        message = read_message(ToFetch, body, self._queues.collection)
        if message is None:
            return
        answers = message.answers or self._queues.answers
        until = message.until or inf
        rules = message.rules
        if again:
            await asyncio.gather(*(self._pass_on(lease, None, answers) for lease in message.leases))
        else:
            pages = (self._take(each, rules.get(each.token, NO_RULE), until, answers) for each in message.leases)
            await asyncio.gather(*pages)

    async def run(self) -> None:
        """Send on what is finished, until cancelled."""
        while True:
            await self._news.wait()
            if len(self._finished) < _FLUSH_PAGES and self._under_way:
                await self._clock.sleep(self._pause)
            self._news.clear()
            ended, self._finished = self._finished, []
            await self._send_on(ended)

    async def _take(self, lease: Lease, rule: VisitRule, until: float, answers: str) -> None:
        async with self._places:
            while self._bytes > self._most_bytes:
                self._fewer_bytes.clear()
                await self._fewer_bytes.wait()
            visited = await self._visit(lease, rule, min(until, lease.expires_at))
            size = _size(visited)
            self._bytes += size
            try:
                await self._pass_on(lease, visited, answers)
            finally:
                self._bytes -= size
                self._fewer_bytes.set()

    async def _visit(self, lease: Lease, rule: VisitRule, until: float) -> Visited | None:
        """Visit a page; None if it is too late, or the worker is told to stop."""
        self._under_way += 1
        try:
            async with self._exchanges:
                if self._stopping or self._clock.now() >= until:
                    return None
                fetched = await self._visitor.fetch(lease, rule)
            return without_body(await self._visitor.read(fetched, rule))
        finally:
            self._under_way -= 1

    async def _pass_on(self, lease: Lease, visited: Visited | None, answers: str) -> None:
        """Return when the visit is sent to the catalog, and its answer to the scheduler."""
        ended = _Ended(lease, visited, answers, asyncio.get_running_loop().create_future())
        self._finished.append(ended)
        self._news.set()
        await ended.sent

    async def _send_on(self, ended: Sequence[_Ended]) -> None:
        """Send visits to the catalog first: only what can no longer get lost counts as answered."""
        visits = [each.visited for each in ended if each.visited is not None]
        for body in pack(self._queues.collection, visits):
            await self._put(self._queues.catalog, body)
        by_queue: defaultdict[str, list[FetchAnswer]] = defaultdict(list)
        for each in ended:
            by_queue[each.answers].append(each.answer(self._clock.now()))
        for queue, answers in by_queue.items():
            for start in range(0, len(answers), MOST_PAGES):
                part = tuple(answers[start : start + MOST_PAGES])
                await self._put(queue, _encode(FetchAnswers(collection=self._queues.collection, answers=part)))
        for each in ended:
            if not each.sent.done():
                each.sent.set_result(None)
        self.pages += len(visits)

    async def _put(self, queue: str, body: bytes) -> None:
        """Put bytes into a queue, however long the broker is away: what was fetched is not fetched again."""
        while True:
            with suppress(BrokerAway):
                await self._send(queue, body)
                return
            await self._clock.sleep(self._pause_again)


class _Ended(NamedTuple):
    """A page that was visited, or is given back."""

    lease: Lease
    visited: Visited | None
    answers: str  # the queue of its scheduler
    sent: asyncio.Future[None]

    def answer(self, now: float) -> FetchAnswer:
        if self.visited is None:
            return FetchAnswer(self.lease.token, None, here=now)
        fetched = self.visited.fetched
        response = fetched.response
        if response is None:
            return FetchAnswer(self.lease.token, fetched.at, reason=fetched.refused)
        wait = (response.header("retry-after") or "")[:200]
        return FetchAnswer(self.lease.token, fetched.at, response.status, response.reason, wait)


def _size(visited: Visited | None) -> int:
    return len(visited.parsed.content_zstd) if visited is not None and visited.parsed is not None else 0
