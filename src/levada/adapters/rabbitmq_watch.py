"""How full are queues of RabbitMQ, and what do their workers tell? By AMQP alone, no management plugin.

A passive declaration tells how many messages wait and how many consumers there are; messages that were handed out
and not yet acknowledged are not seen. Workers may tell more: anything published to the fanout exchange
`levada.reports` is heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from levada.adapters.rabbitmq_dial import away, dial, open_channel, passing, place, require
from levada.ports import Clock
from levada.stages.looks import QueueLook

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
    from aiormq.abc import FieldTable

__all__ = ["REPORTS", "RabbitmqWatch"]

REPORTS = "levada.reports"
_MOST_REPORTS = 10_000  # that may wait to be heard; the oldest go first
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


class RabbitmqWatch:
    """`hear` is given each report; an answer may take `seconds`. Dials again by itself, less and less often."""

    def __init__(
        self, url: str, clock: Clock, *, seconds: float = 2.0, hear: Callable[[bytes], None] | None = None
    ) -> None:
        require()
        place(url)
        self._url = url
        self._clock = clock
        self._seconds = seconds
        self._hear = hear
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self._trouble: BaseException | None = None
        self._pause = _FIRST_PAUSE
        self._not_before = float("-inf")

    async def look(self, names: Sequence[str]) -> list[QueueLook | None]:
        if self._trouble is not None and self._clock.monotonic() < self._not_before:
            raise away(self._url, self._trouble)
        try:
            async with asyncio.timeout(3 * self._seconds):
                looks = [await self._look(name) for name in names]
        except passing() as error:  # a timeout is one of them
            await self.close()
            self._put_off(error)
            raise away(self._url, error) from error
        self._trouble, self._pause = None, _FIRST_PAUSE
        return looks

    async def close(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with suppress(*passing()):
                await connection.close()

    async def _look(self, name: str) -> QueueLook | None:
        from aio_pika.exceptions import ChannelNotFoundEntity

        channel = await self._open()
        try:
            queue = await channel.declare_queue(name, passive=True, timeout=self._seconds)
        except ChannelNotFoundEntity:
            self._channel = None  # the server has closed it
            return None
        told = queue.declaration_result
        return QueueLook(told.message_count or 0, told.consumer_count or 0)

    async def _open(self) -> AbstractChannel:
        if self._connection is None or self._connection.is_closed:
            await self.close()
            self._connection = await dial(self._url, self._seconds)
            if self._hear is not None:
                await self._listen(self._connection)
        if self._channel is None or self._channel.is_closed:
            self._channel = await open_channel(self._connection, self._seconds, confirms=False)
        return self._channel

    async def _listen(self, connection: AbstractConnection) -> None:
        from aio_pika import ExchangeType

        channel = await open_channel(connection, self._seconds, confirms=False)
        reports = await channel.declare_exchange(REPORTS, ExchangeType.FANOUT, timeout=self._seconds)
        limit: FieldTable = {"x-max-length": _MOST_REPORTS, "x-message-ttl": 60_000}
        queue = await channel.declare_queue(exclusive=True, arguments=limit, timeout=self._seconds)
        await queue.bind(reports, timeout=self._seconds)
        await queue.consume(self._heard, no_ack=True, timeout=self._seconds)

    async def _heard(self, message: AbstractIncomingMessage) -> None:
        assert self._hear is not None
        self._hear(message.body)

    def _put_off(self, error: BaseException) -> None:
        self._trouble = error
        self._not_before = self._clock.monotonic() + self._pause
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause)
