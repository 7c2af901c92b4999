"""RabbitMQ connections and confirmed publishing.

Queues are durable, messages persistent and mandatory: a message whose queue was deleted is returned, and the queue
is created again. A confirmed message is not sent again; after a lost confirmation, a message may arrive twice under
one id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from levada.core.errors import BrokerAway, BrokerError, MissingExtra, UsageError
from levada.core.protocols import Clock

if TYPE_CHECKING:
    from aio_pika.abc import (
        AbstractChannel,
        AbstractConnection,
        AbstractExchange,
        AbstractIncomingMessage,
        AbstractQueue,
    )
    from aiormq.abc import FieldTable


_IN_FLIGHT = 512
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


def require() -> None:
    try:
        import aio_pika  # noqa: F401
    except ImportError:
        raise MissingExtra("aio-pika", "rabbitmq") from None


def place(url: str) -> str:
    """Host and port of a broker's URL, without the password."""
    try:
        parts = urlsplit(url)
        usual = {"amqp": 5672, "amqps": 5671}[parts.scheme]
        port = parts.port or usual
    except (KeyError, ValueError):
        raise UsageError("a broker's address looks like amqp://user:password@host:5672/") from None
    # Otherwise a part of the password would count as the host.
    if parts.netloc.count("@") > 1 or "@" in parts.path or parts.fragment:
        raise UsageError("a broker's address: in a password, write signs such as @ / # as %40 %2F %23")
    return f"{parts.hostname or 'localhost'}:{port}"


def passing() -> tuple[type[BaseException], ...]:
    """Errors after which a new connection may help."""
    from aio_pika.exceptions import AMQPError, ChannelInvalidStateError

    return AMQPError, ChannelInvalidStateError, OSError


def described(trouble: BaseException) -> str:
    return f"{type(trouble).__name__}: {trouble}" if str(trouble) else type(trouble).__name__


def away(url: str, error: BaseException) -> BrokerAway:
    return BrokerAway(f"RabbitMQ at {place(url)} does not answer ({described(error)})")


async def dial(url: str, seconds: float) -> AbstractConnection:
    """A connection; `BrokerError` if it is refused for good, a `passing` error otherwise."""
    import aio_pika
    from aio_pika.exceptions import AuthenticationError, InvalidFrameError, ProbableAuthenticationError

    # A server that refuses a virtual host closes the connection where the client expects a frame.
    refusals = (AuthenticationError, ProbableAuthenticationError, InvalidFrameError)
    try:
        return await aio_pika.connect(url, timeout=seconds)
    except refusals as error:
        raise BrokerError(f"RabbitMQ at {place(url)} refused the user, password or virtual host") from error


async def open_channel(connection: AbstractConnection, seconds: float, *, confirms: bool) -> AbstractChannel:
    """A channel; with confirms, a message that no queue takes is an error."""
    channel = connection.channel(publisher_confirms=confirms, on_return_raises=confirms)
    try:
        await channel.initialize(timeout=seconds)
    except RuntimeError as error:  # the client's error for a connection that has ended meanwhile
        raise ConnectionError(str(error)) from error
    return channel


async def hang_up(open_end: AbstractConnection | AbstractChannel | None) -> None:
    """Close a connection or channel, if there is one, whatever its state."""
    if open_end is not None:
        with suppress(*passing()):
            await open_end.close()


async def listen(
    channel: AbstractChannel,
    exchange: str,
    receive: Callable[[AbstractIncomingMessage], Awaitable[None]],
    limits: FieldTable,
    seconds: float,
    *,
    auto_delete: bool,
) -> AbstractExchange:
    """Receive all messages of a fanout exchange, on a queue of our own that keeps them within `limits`."""
    from aio_pika import ExchangeType

    fanout = await channel.declare_exchange(exchange, ExchangeType.FANOUT, auto_delete=auto_delete, timeout=seconds)
    queue = await channel.declare_queue(exclusive=True, auto_delete=auto_delete, arguments=limits, timeout=seconds)
    await queue.bind(fanout, timeout=seconds)
    await queue.consume(receive, no_ack=True, timeout=seconds)
    return fanout


async def declare_queue(
    channel: AbstractChannel, name: str, seconds: float, otherwise: str, arguments: FieldTable | None = None
) -> AbstractQueue:
    """Create a durable queue, if it is missing; `otherwise` says what else helps if it has other settings."""
    from aio_pika.exceptions import ChannelPreconditionFailed

    try:
        return await channel.declare_queue(name, durable=True, arguments=arguments, timeout=seconds)
    except ChannelPreconditionFailed as error:
        raise BrokerError(f"the queue {name} exists with other settings: delete it, or {otherwise}") from error


class RabbitmqClient:
    """One connection, opened when it is needed, and its first channel. Each answer may take `seconds`."""

    def __init__(self, url: str, clock: Clock, seconds: float) -> None:
        require()
        self._where = place(url)
        self._url, self._clock, self._seconds = url, clock, seconds
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """Close the connection; what comes next opens it again."""
        connection, self._connection, self._channel = self._connection, None, None
        await hang_up(connection)

    async def _new_channel(self, *, confirms: bool) -> AbstractChannel:
        """A new channel, on a new connection if the old one is broken, which it does not always show."""
        if self._connection is None or self._connection.is_closed:
            await self.close()
            self._connection = await dial(self._url, self._seconds)
        try:
            return await open_channel(self._connection, self._seconds, confirms=confirms)
        except passing():
            await self.close()
            raise


class Outgoing(NamedTuple):
    queue: str
    body: bytes
    id: str


class RabbitmqLine(RabbitmqClient):
    """Confirmed publishing. It gives up after `tries` attempts without progress, with growing pauses."""

    def __init__(self, url: str, clock: Clock, *, tries: int, seconds: float) -> None:
        super().__init__(url, clock, seconds)
        self._tries = max(1, tries)
        self._queues: set[str] = set()

    async def declare(self, queues: Iterable[str]) -> list[int]:
        """Create missing queues; returns the number of messages that wait in each, without delivered ones."""
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
        raise AssertionError("the last attempt returns or raises")

    def forget(self, queue: str) -> None:
        """Do not create this queue again if it is deleted."""
        self._queues.discard(queue)

    async def send(self, messages: Sequence[Outgoing]) -> None:
        """Send messages; returns when all are confirmed."""
        for start in range(0, len(messages), _IN_FLIGHT):
            left = list(range(start, min(start + _IN_FLIGHT, len(messages))))
            tried = 0
            while left:
                arrived, trouble = await self._attempt(messages, left)
                left = [one for one in left if one not in arrived]
                tried = 0 if arrived else tried + 1
                if trouble is not None:
                    await self._after(trouble, tried, [*left, *range(start + _IN_FLIGHT, len(messages))])

    async def _drop_broken(self, channel: AbstractChannel | None) -> None:
        """Close a broken connection, unless another task has already replaced it."""
        if channel is not None and channel is self._channel:
            await self.close()

    async def _attempt(
        self, messages: Sequence[Outgoing], some: Sequence[int]
    ) -> tuple[set[int], BaseException | None]:
        """The confirmed ones, and the error of the first of the others."""
        try:
            channel = await self._open()
        except passing() as error:
            return set(), error
        done = await asyncio.gather(*(self._publish(channel, messages[one]) for one in some), return_exceptions=True)
        troubles = [result for result in done if result is not None]
        # If this task itself is cancelled, `gather` raises; a cancelled publication lost its connection.
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
                try:
                    channel = await self._new_channel(confirms=True)
                    for name in sorted(self._queues):
                        await self._declare(channel, name)
                except BaseException:
                    await self.close()
                    raise
                self._channel = channel
            return self._channel

    async def _declare(self, channel: AbstractChannel, name: str) -> int:
        try:
            queue = await declare_queue(channel, name, self._seconds, "use another prefix")
        except BrokerError:
            await self.close()
            raise
        return queue.declaration_result.message_count or 0

    async def _after(self, trouble: BaseException, tried: int, left: Sequence[int] = ()) -> None:
        """Wait a little, or raise if that was the last attempt."""
        if tried >= self._tries:
            lost = f", {len(left)} messages are not confirmed" if left else ""
            raise BrokerAway(
                f"RabbitMQ at {self._where} does not answer after {tried} tries{lost} ({described(trouble)})", left
            ) from trouble
        await self._clock.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**tried))
