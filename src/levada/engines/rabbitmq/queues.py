"""Queue statistics and worker reports, by AMQP alone.

A passive declaration returns the number of waiting messages and of consumers; delivered messages that are not yet
acknowledged are not counted. Workers may report more to the fanout exchange `levada.reports`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from levada.core.protocols import Clock
from levada.engines.rabbitmq.connection import RabbitmqClient, away, listen, passing
from levada.scale.statistics import QueueStatistics

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
    from aiormq.abc import FieldTable

REPORTS = "levada.reports"
_MOST_REPORTS = 10_000  # that may wait; the oldest are dropped first
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


class RabbitmqWatch(RabbitmqClient):
    """Polls queues, and passes each worker report to `hear`.

    An answer may take `seconds`. A broken connection is opened again, with growing pauses.
    """

    def __init__(
        self, url: str, clock: Clock, *, seconds: float = 2.0, hear: Callable[[bytes], None] | None = None
    ) -> None:
        super().__init__(url, clock, seconds)
        self._hear = hear
        self._trouble: BaseException | None = None
        self._pause = _FIRST_PAUSE
        self._not_before = float("-inf")

    async def poll(self, names: Sequence[str]) -> list[QueueStatistics | None]:
        if self._trouble is not None and self._clock.monotonic() < self._not_before:
            raise away(self._url, self._trouble)
        try:
            async with asyncio.timeout(3 * self._seconds):
                statistics = [await self._statistics(name) for name in names]
        except passing() as error:  # a timeout is one of them
            await self.close()
            self._trouble = error
            self._not_before = self._clock.monotonic() + self._pause
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause)
            raise away(self._url, error) from error
        self._trouble, self._pause = None, _FIRST_PAUSE
        return statistics

    async def _statistics(self, name: str) -> QueueStatistics | None:
        from aio_pika.exceptions import ChannelNotFoundEntity

        channel = await self._open()
        try:
            queue = await channel.declare_queue(name, passive=True, timeout=self._seconds)
        except ChannelNotFoundEntity:
            self._channel = None  # the server has closed it
            return None
        result = queue.declaration_result
        return QueueStatistics(result.message_count or 0, result.consumer_count or 0)

    async def _open(self) -> AbstractChannel:
        if self._connection is None or self._connection.is_closed:
            await self.close()
            if self._hear is not None:
                limits: FieldTable = {"x-max-length": _MOST_REPORTS, "x-message-ttl": 60_000}
                channel = await self._new_channel(confirms=False)
                await listen(channel, REPORTS, self._take_report, limits, self._seconds, auto_delete=False)
        if self._channel is None or self._channel.is_closed:
            self._channel = await self._new_channel(confirms=False)
        return self._channel

    async def _take_report(self, message: AbstractIncomingMessage) -> None:
        assert self._hear is not None
        self._hear(message.body)
