"""Jobs in RabbitMQ queues: published, taken and acknowledged, with none lost.

Queues are quorum queues; one with a capacity refuses messages when it is full, and the publisher is told. A job is
acknowledged when it is done and its results are confirmed: after a crash before that, the job comes again. A broken
connection is opened again, as often as needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from levada.core.errors import BrokerAway, BrokerError
from levada.core.protocols import Clock
from levada.engines.rabbitmq.connection import RabbitmqClient, away, declare_queue, described, hang_up, passing
from levada.engines.rabbitmq.queues import REPORTS

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
    from aiormq.abc import FieldTable

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_CHECK = 5.0  # seconds between two checks of an idle worker that its queue still has it as a consumer


_OWN_EXPIRES = 60_000  # milliseconds without a consumer


class QueueJob(NamedTuple):
    body: bytes
    id: str
    again: bool  # it was delivered before, to a worker that did not finish it


class RabbitmqJobs(RabbitmqClient):
    """A client for publishers and workers.

    `capacities` are the queues to declare, and the most messages that each may hold (0: any number); `own` is a queue
    of this client alone, which goes soon after it. An answer of the broker may take `seconds`. `on_trouble` is called
    with why it does not answer workers, and with "" when it does again.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        capacities: dict[str, int],
        *,
        seconds: float = 10.0,
        own: str = "",
        on_trouble: Callable[[str], None] = lambda trouble: None,
    ) -> None:
        super().__init__(url, clock, seconds)
        self._on_trouble = on_trouble
        self._capacities = dict(capacities)
        self._own = own
        if own:
            self._capacities[own] = 0
        self._is_away = False
        self._held: set[str] = set()  # queues that this client had for itself alone

    async def open(self) -> None:
        """Declare all queues; `BrokerError` if that fails."""
        try:
            await self._publisher()
        except passing() as error:
            raise away(self._url, error) from error

    async def publish(self, queue: str, body: bytes, id: str, *, must_arrive: bool = True) -> bool:
        """True when the broker has confirmed it, False if the queue is full; `BrokerAway` if that is unknown."""
        from aio_pika import DeliveryMode, Message
        from aio_pika.exceptions import DeliveryError, PublishError

        message = Message(body, message_id=id, delivery_mode=DeliveryMode.PERSISTENT)
        try:
            async with _own_cancelling(self._where):
                channel = await self._publisher()
                await channel.default_exchange.publish(message, queue, mandatory=must_arrive, timeout=self._seconds)
        except PublishError:
            self._channel = None  # the queue was deleted; the next channel creates it again
            await hang_up(channel)
            return False
        except DeliveryError:
            return False
        except passing() as error:
            raise away(self._url, error) from error
        return True

    async def drain(self, queue: str) -> list[bytes]:
        """Remove and return all messages that wait in a queue."""
        bodies: list[bytes] = []
        try:
            channel = await self._publisher()
            waiting = await channel.get_queue(queue, ensure=False)
            while (message := await waiting.get(no_ack=True, fail=False, timeout=self._seconds)) is not None:
                bodies.append(message.body)
        except passing() as error:
            raise away(self._url, error) from error
        return bodies

    async def put(self, queue: str, body: bytes, id: str) -> None:
        """Publish; waits until the queue has room. Of the queues that others declare, one that is gone loses it."""
        if queue not in self._capacities:
            await self.publish(queue, body, id, must_arrive=False)
            return
        pause = _FIRST_PAUSE
        while not await self.publish(queue, body, id):
            await self._clock.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)

    async def report(self, body: bytes) -> None:
        """Publish a worker report; it is lost if nobody listens or the broker is away."""
        from aio_pika import Message

        with suppress(*passing(), BrokerError):
            async with _own_cancelling(self._where):
                channel = await self._publisher()
                reports = await channel.get_exchange(REPORTS, ensure=False)
                await reports.publish(Message(body), "", mandatory=False, timeout=self._seconds)

    async def work(
        self,
        queue: str,
        job: Callable[[QueueJob], Awaitable[None]],
        stopping: asyncio.Event,
        *,
        at_once: int = 1,
        alone: bool = False,
    ) -> None:
        """Do jobs, at most so many at once, until `stopping`; `BrokerError` if the broker refuses for good.

        Any number of workers may run this at the same time, unless one wants the queue `alone`. Jobs that are under
        way when the connection breaks are finished, although others get them too.
        """
        pause = _FIRST_PAUSE
        passing_or_away: tuple[type[BaseException], ...] = (BrokerAway, *passing())
        under_way = _UnderWay(job, self._clock)
        try:
            while not stopping.is_set():
                try:
                    async with _own_cancelling(self._where):
                        await self._publisher()  # declares the queues
                        self._note("")
                        await self._take(await self._consumer(at_once), queue, under_way, stopping, alone=alone)
                    pause = _FIRST_PAUSE
                except passing_or_away as error:
                    self._note(described(error))
                    await self._clock.sleep(pause)
                    pause = min(_LONGEST_PAUSE, 2 * pause)
        finally:
            under_way.cancel()

    def _note(self, trouble: str) -> None:
        """Log once that the broker is away, and once when it is back, for all workers together."""
        if bool(trouble) is self._is_away:
            return
        self._is_away = bool(trouble)
        self._on_trouble(f"RabbitMQ at {self._where} does not answer" if trouble else "")
        if trouble:
            log.warning("RabbitMQ at %s does not answer (%s); trying again", self._where, trouble)
        else:
            log.info("RabbitMQ at %s answers again", self._where)

    async def _take(
        self, channel: AbstractChannel, name: str, jobs: _UnderWay, stopping: asyncio.Event, *, alone: bool
    ) -> None:
        """Take jobs until `stopping` or the end of the channel; unfinished ones then return to the queue."""
        inbox: asyncio.Queue[AbstractIncomingMessage | None] = asyncio.Queue()  # None: look whether to end
        ends = [asyncio.ensure_future(each) for each in (stopping.wait(), _closed(channel), jobs.failed.wait())]
        for end in ends:
            end.add_done_callback(lambda _: inbox.put_nowait(None))
        try:
            queue = await channel.get_queue(name, ensure=False)
            if alone:
                await self._be_alone(channel, name)
            tag = await queue.consume(inbox.put, timeout=self._seconds)
            while not any(end.done() for end in ends):
                message = None
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CHECK):
                        message = await inbox.get()
                if message is not None:
                    jobs.begin(message)
                elif not any(end.done() for end in ends):
                    declared = await self._declare(channel, name)  # one that was deleted is created, without consumers
                    if not declared.declaration_result.consumer_count:
                        raise ConnectionError("the queue was deleted and created again")
            if stopping.is_set() and not channel.is_closed:
                await queue.cancel(tag, timeout=self._seconds)
                ends[0] = asyncio.ensure_future(jobs.finish())
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            jobs.raise_failure()
        finally:
            for end in ends:
                end.cancel()
            await hang_up(channel)

    async def _be_alone(self, channel: AbstractChannel, name: str) -> None:
        """Hold the lock of a queue: another queue, which belongs to the connection and ends with it.

        Quorum queues do not refuse a second consumer. If the lock was ours, the broker may not have noticed yet that
        the connection before has ended.
        """
        from aiormq.exceptions import ChannelLockedResource

        try:
            await channel.declare_queue(f"{name}.lock", exclusive=True, timeout=self._seconds)
        except ChannelLockedResource as error:
            if name in self._held:
                raise ConnectionError("the connection before is not closed yet") from error
            raise BrokerError(f"another process consumes the queue {name}, which is for one alone") from error
        self._held.add(name)

    async def _consumer(self, at_once: int) -> AbstractChannel:
        """A channel for one worker, so that its errors do not reach the others."""
        async with self._opening:
            channel = await self._new_channel(confirms=False)
        await channel.set_qos(at_once, timeout=self._seconds)
        return channel

    async def _publisher(self) -> AbstractChannel:
        async with self._opening:
            if self._channel is None or self._channel.is_closed:
                from aio_pika import ExchangeType

                channel = await self._new_channel(confirms=True)
                await channel.declare_exchange(REPORTS, ExchangeType.FANOUT, timeout=self._seconds)
                for name in self._capacities:
                    await self._declare(channel, name)
                self._channel = channel
            return self._channel

    async def _declare(self, channel: AbstractChannel, name: str) -> AbstractQueue:
        arguments: FieldTable = {"x-queue-type": "quorum"}
        if capacity := self._capacities.get(name):
            arguments |= {"x-max-length": capacity, "x-overflow": "reject-publish"}
        if name == self._own:
            arguments["x-expires"] = _OWN_EXPIRES
        return await declare_queue(channel, name, self._seconds, "let it run empty first", arguments)


class _UnderWay:
    """The jobs of one worker that are under way, each in a task of its own, on whatever channel they came."""

    def __init__(self, job: Callable[[QueueJob], Awaitable[None]], clock: Clock) -> None:
        self.failed = asyncio.Event()
        self._job = job
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    def begin(self, message: AbstractIncomingMessage) -> None:
        task = asyncio.create_task(self._do(message))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def finish(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _do(self, message: AbstractIncomingMessage) -> None:
        try:
            await self._job(QueueJob(message.body, message.message_id or "", bool(message.redelivered)))
        except BrokerAway as error:  # what it leads to cannot be passed on now
            log.debug("a job returns to its queue: %s", error)
            await self._clock.sleep(_FIRST_PAUSE)
            await _told(message.nack(requeue=True))
        else:
            # Last: a crash before this line repeats the job and never loses it.
            await _told(message.ack())

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and self._failure is None:
            self._failure = error
            self.failed.set()


async def _told(telling: Awaitable[None]) -> None:
    """Tell the broker how a job ended; a channel that has ended meanwhile has returned the job to its queue."""
    with suppress(*passing(), RuntimeError, BrokerAway):
        async with _own_cancelling(""):
            await telling


@asynccontextmanager
async def _own_cancelling(where: str) -> AsyncIterator[None]:
    """Turn the client's cancellations into `BrokerAway`.

    When a connection or channel ends, the client cancels the tasks that wait on it, or raises a bare `Exception`.
    Only a cancellation of our own ends a task.
    """
    try:
        yield
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        raise BrokerAway(f"RabbitMQ at {where} closed the connection") from None
    except Exception as error:
        if type(error) is not Exception or error.args:
            raise
        raise BrokerAway(f"RabbitMQ at {where} closed the connection") from error


async def _closed(channel: AbstractChannel) -> None:
    with suppress(*passing()):
        await channel.closed()
