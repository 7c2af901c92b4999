"""Wakeups through RabbitMQ, for instances that wait.

`notify` publishes to a fanout exchange, and each instance listens on a queue of its own. No message is kept and
none matters: an instance that misses one polls the task store at the end of its wait, as without a broker. The
connection lives on a thread with an event loop of its own, reconnects by itself, and reports its first problem
only.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from levada.core.errors import BrokerError
from levada.engines.rabbitmq.connection import away, dial, hang_up, listen, open_channel, place, require

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
# seconds: messages that come together are one, so that a flood of them does not become a flood of polls
_GATHER = 0.005


class RabbitmqWakeup:
    """Wakeups of the load `name`. Each answer of the broker may take `seconds`; `say` receives the first
    problem."""

    def __init__(self, url: str, name: str, say: Callable[[str], object], *, seconds: float = 2.0) -> None:
        require()
        place(url)
        self._url, self._name, self._say, self._seconds = url, f"levada.load.{name}", say, seconds
        self._own = secrets.token_bytes(8)
        self._notified, self._over, self._told, self._wanted = Event(), False, False, False
        self._pause = _FIRST_PAUSE
        self._loop = asyncio.new_event_loop()
        self._stir = asyncio.Event()
        self._thread = Thread(target=self._run, name="levada-load-wakeup", daemon=True)
        self._thread.start()

    def notify(self) -> None:
        self._wanted = True
        self._wake_loop()

    def wait(self, seconds: float) -> bool:
        woken = self._notified.wait(seconds)
        if woken and seconds > _GATHER:
            time.sleep(_GATHER)
        self._notified.clear()
        return woken

    def close(self) -> None:
        """Close after the last message was sent, if the broker is there: it is dialled at least once."""
        self._over = True
        self._wake_loop()
        self._thread.join()

    def _wake_loop(self) -> None:
        with suppress(RuntimeError):  # the loop has ended: the broker refused us
            self._loop.call_soon_threadsafe(self._stir.set)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        while True:
            try:
                await self._connected()
            except BrokerError as error:
                self._report(error)
                return
            # No error of the broker ends a load. A call whose connection is lost may be cancelled.
            except (Exception, asyncio.CancelledError) as error:
                self._report(away(self._url, error))
            await self._rest()
            if self._over:
                return

    async def _rest(self) -> None:
        """Wait before the next connection attempt, unless closing; a message meanwhile waits for the connection."""
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
            exchange = await listen(
                channel, self._name, self._received, {"x-max-length": 1}, self._seconds, auto_delete=True
            )
            self._pause = _FIRST_PAUSE
            self._notified.set()  # messages until now were missed
            await self._publish_all(channel, exchange)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await hang_up(connection)

    async def _publish_all(self, channel: AbstractChannel, exchange: AbstractExchange) -> None:
        """Send messages until closing, or until the connection is lost."""
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

    async def _received(self, message: AbstractIncomingMessage) -> None:
        if message.body != self._own:
            self._notified.set()

    def _report(self, trouble: BrokerError) -> None:
        if not self._told:
            self._told = True
            self._say(f"{trouble}: waiting instances are not woken, they poll")
