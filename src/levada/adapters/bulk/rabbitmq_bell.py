"""How do instances that wait for work hear that there is some? By RabbitMQ, which here wakes and nothing else.

Whoever rings publishes to a fanout exchange, each instance hears by a queue of its own. No message is kept and none
matters: whoever misses one looks into the book at the end of the nap, as without a broker. The connection lives on
a thread with a loop of its own, dials again by itself, and its troubles are told once.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from levada.adapters.rabbitmq_dial import away, dial, open_channel, passing, place, require
from levada.errors import BrokerError

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange, AbstractIncomingMessage
    from aiormq.abc import FieldTable

__all__ = ["RabbitmqBell"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_GATHER = 0.005  # seconds: rings that come together are one, and a flood of them does not become a flood of looks


class RabbitmqBell:
    """Of the load `name`; each answer of the broker may take `seconds`, and `say` is told of the first trouble."""

    def __init__(self, url: str, name: str, say: Callable[[str], object], *, seconds: float = 2.0) -> None:
        require()
        place(url)
        self._url, self._name, self._say, self._seconds = url, f"levada.load.{name}", say, seconds
        self._own = secrets.token_bytes(8)
        self._rung, self._over, self._told, self._wanted = Event(), False, False, False
        self._pause = _FIRST_PAUSE
        self._loop = asyncio.new_event_loop()
        self._stir = asyncio.Event()
        self._thread = Thread(target=self._run, name="bell", daemon=True)
        self._thread.start()

    def ring(self) -> None:
        self._wanted = True
        self._stirred()

    def wait(self, seconds: float) -> bool:
        woken = self._rung.wait(seconds)
        if woken and seconds > _GATHER:
            time.sleep(_GATHER)
        self._rung.clear()
        return woken

    def close(self) -> None:
        """After the last ring has gone out, if the broker is there: it is dialled at least once."""
        self._over = True
        self._stirred()
        self._thread.join()

    def _stirred(self) -> None:
        with suppress(RuntimeError):  # the loop has ended: the broker had refused us
            self._loop.call_soon_threadsafe(self._stir.set)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        while True:
            try:
                await self._connected()
            except BrokerError as error:
                self._tell(error)
                return
            # Whatever a broker says to its client ends no load; a call whose connection is lost may be cancelled.
            except (Exception, asyncio.CancelledError) as error:
                self._tell(away(self._url, error))
            await self._rest()
            if self._over:
                return

    async def _rest(self) -> None:
        """Before the next dial, unless all is over; a ring meanwhile waits for the connection."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause):
                while not self._over:
                    self._stir.clear()
                    await self._stir.wait()
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause)

    async def _connected(self) -> None:
        connection = await dial(self._url, self._seconds)
        try:
            channel = await open_channel(connection, self._seconds, confirms=False)
            exchange = await self._listen(channel)
            self._pause = _FIRST_PAUSE
            self._rung.set()  # what was rung until now was not heard
            await self._ringing(channel, exchange)
        finally:
            await self._hang_up(connection)

    async def _listen(self, channel: AbstractChannel) -> AbstractExchange:
        from aio_pika import ExchangeType

        exchange = await channel.declare_exchange(
            self._name, ExchangeType.FANOUT, auto_delete=True, timeout=self._seconds
        )
        limit: FieldTable = {"x-max-length": 1}
        queue = await channel.declare_queue(
            exclusive=True, auto_delete=True, arguments=limit, timeout=self._seconds
        )
        await queue.bind(exchange, timeout=self._seconds)
        await queue.consume(self._heard, no_ack=True, timeout=self._seconds)
        return exchange

    async def _ringing(self, channel: AbstractChannel, exchange: AbstractExchange) -> None:
        """Until all is over, or the connection is lost."""
        from aio_pika import Message

        channel.close_callbacks.add(lambda *_: self._stir.set())
        while not channel.is_closed:
            if self._wanted:
                self._wanted = False
                await exchange.publish(Message(self._own), "", mandatory=False, timeout=self._seconds)
            elif self._over:
                return
            else:
                await self._stir.wait()
                self._stir.clear()
        raise ConnectionError("the connection was lost")

    async def _heard(self, message: AbstractIncomingMessage) -> None:
        if message.body != self._own:
            self._rung.set()

    async def _hang_up(self, connection: AbstractConnection) -> None:
        with suppress(*passing()):
            async with asyncio.timeout(self._seconds):
                await connection.close()

    def _tell(self, trouble: BrokerError) -> None:
        if not self._told:
            self._told = True
            self._say(f"{trouble}: waiting instances are not woken, they look by themselves")
