"""How does a message get to RabbitMQ for certain? It is confirmed, or sent again, or named in an error.

Queues are durable, messages persistent and mandatory: one whose queue was deleted comes back, and the queue is made
anew. What was confirmed is not sent again; where a confirmation was lost, a message may arrive twice, under one id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from levada.adapters.rabbitmq_dial import dial, passing, place, require, said
from levada.errors import BrokerAway, BrokerError
from levada.ports import Clock

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection

__all__ = ["Outgoing", "RabbitmqLine"]

_IN_FLIGHT = 512
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Outgoing(NamedTuple):
    queue: str
    body: bytes
    id: str


class RabbitmqLine:
    """Gives up after `tries` without progress, with growing pauses; each answer may take `seconds`."""

    def __init__(self, url: str, clock: Clock, *, tries: int, seconds: float) -> None:
        self._where = place(url)
        self._url = url
        self._clock = clock
        self._tries = max(1, tries)
        self._seconds = seconds
        self._queues: set[str] = set()
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self._opening = asyncio.Lock()
        require()

    async def declare(self, queues: Iterable[str]) -> list[int]:
        """These queues are there from now on; how many messages wait in each, not counting those handed out."""
        names = list(queues)
        for tried in range(1, self._tries + 1):
            channel = None
            try:
                channel = await self._open()
                waiting = [await self._declare(channel, name) for name in names]
            except passing() as error:
                await self._drop_broken(channel)
                await self._after(error, tried)
            else:
                self._queues.update(names)
                return waiting
        raise AssertionError("the last try returns or raises")

    def forget(self, queue: str) -> None:
        """Not to be made anew if it is deleted; until then it stays where it is."""
        self._queues.discard(queue)

    async def send(self, messages: Sequence[Outgoing]) -> None:
        """Returns when all are confirmed."""
        for start in range(0, len(messages), _IN_FLIGHT):
            left = list(range(start, min(start + _IN_FLIGHT, len(messages))))
            tried = 0
            while left:
                arrived, trouble = await self._attempt(messages, left)
                left = [one for one in left if one not in arrived]
                tried = 0 if arrived else tried + 1
                if trouble is not None:
                    await self._after(trouble, tried, [*left, *range(start + _IN_FLIGHT, len(messages))])

    async def drop(self) -> None:
        """Hang up; the next message dials again."""
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with suppress(*passing()):
                await connection.close()

    async def _drop_broken(self, channel: AbstractChannel | None) -> None:
        """Unless another task has noticed first, and dialled already."""
        if channel is not None and channel is self._channel:
            await self.drop()

    async def _attempt(
        self, messages: Sequence[Outgoing], some: Sequence[int]
    ) -> tuple[set[int], BaseException | None]:
        """Which of them were confirmed, and what kept the first of the others."""
        try:
            channel = await self._open()
        except passing() as error:
            return set(), error
        done = await asyncio.gather(
            *(self._publish(channel, messages[one]) for one in some), return_exceptions=True
        )
        troubles = [result for result in done if result is not None]
        # Where this task itself is cancelled, `gather` raises; a cancelled publication lost its connection.
        for trouble in troubles:
            if not isinstance(trouble, (*passing(), asyncio.CancelledError)):
                raise trouble
        if troubles:
            await self._drop_broken(channel)
        arrived = {one for one, result in zip(some, done, strict=True) if result is None}
        return arrived, troubles[0] if troubles else None

    async def _publish(self, channel: AbstractChannel, message: Outgoing) -> None:
        from aio_pika import DeliveryMode, Message

        sent = Message(message.body, message_id=message.id, delivery_mode=DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(sent, message.queue, timeout=self._seconds)

    async def _open(self) -> AbstractChannel:
        async with self._opening:
            if self._channel is None:
                await self._dial()
            assert self._channel is not None
            return self._channel

    async def _dial(self) -> None:
        self._connection = await dial(self._url, self._seconds)
        try:
            channel = self._connection.channel(publisher_confirms=True, on_return_raises=True)
            await channel.initialize(timeout=self._seconds)
            for name in sorted(self._queues):
                await self._declare(channel, name)
        except BaseException:
            await self.drop()
            raise
        self._channel = channel

    async def _declare(self, channel: AbstractChannel, name: str) -> int:
        from aio_pika.exceptions import ChannelPreconditionFailed

        try:
            queue = await channel.declare_queue(name, durable=True, timeout=self._seconds)
        except ChannelPreconditionFailed as error:
            await self.drop()
            raise BrokerError(
                f"the queue {name} exists with other settings: delete it, or use another prefix"
            ) from error
        return queue.declaration_result.message_count or 0

    async def _after(self, trouble: BaseException, tried: int, left: Sequence[int] = ()) -> None:
        """Wait a little, unless that was the last try."""
        if tried >= self._tries:
            lost = f", {len(left)} messages are not confirmed" if left else ""
            raise BrokerAway(
                f"RabbitMQ at {self._where} does not answer after {tried} tries{lost} ({said(trouble)})", left
            ) from trouble
        await self._clock.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tried))
