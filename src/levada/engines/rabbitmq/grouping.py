"""Grouped publishing: messages spread over the queues of workers by a grouping.

Each worker has a durable queue, named by a prefix and its number. A message goes to one worker and is sent again to
the same worker until the broker confirms it: see `levada.engines.rabbitmq.connection`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Protocol, Self, runtime_checkable

from levada.core.clock import SystemClock
from levada.core.errors import UsageError
from levada.core.protocols import Clock
from levada.engines.rabbitmq.connection import Outgoing, RabbitmqLine
from levada.grouping import Grouping, Key, LevelledGrouping

_LONGEST_PREFIX = 200  # bytes; AMQP allows 255 for a queue's name


@runtime_checkable
class AdaptableGrouping(Protocol):
    """A grouping whose workers may come and go, and that accepts the lengths of their queues."""

    def join(self, worker: int) -> None: ...

    def leave(self, worker: int) -> None: ...

    def observe_queues(self, queues: Sequence[float]) -> None: ...


class GroupedPublisher:
    """Publishes messages by key.

    `workers` is their number, or which ones; `secret` is the same bytes at every sender, unknown outside. Another
    `grouping` must use the same worker numbers. With `feedback_every`, an adaptable grouping gets the actual
    lengths of the queues after this many messages.
    """

    def __init__(
        self,
        url: str,
        workers: int | Iterable[int],
        secret: bytes = b"",
        *,
        grouping: Grouping | None = None,
        prefix: str = "levada.worker.",
        feedback_every: int = 0,
        tries: int = 6,
        seconds: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        if not prefix or prefix.startswith("amq.") or len(prefix.encode()) > _LONGEST_PREFIX:
            raise UsageError(
                f"a prefix of queues has 1 to {_LONGEST_PREFIX} bytes and does not begin with 'amq.': {prefix[:60]!r}"
            )
        self._workers = sorted(set(range(workers) if isinstance(workers, int) else workers))
        self._grouping = grouping or LevelledGrouping(self._workers, secret)
        self._prefix = prefix
        self._feedback_every = feedback_every
        self._clock = clock or SystemClock()
        self._line = RabbitmqLine(url, self._clock, tries=tries, seconds=seconds)
        self._sender = secrets.token_hex(8)
        self._count = self._asked_at = 0

    @property
    def workers(self) -> tuple[int, ...]:
        return tuple(self._workers)

    def queue_of(self, worker: int) -> str:
        return f"{self._prefix}{worker}"

    async def __aenter__(self) -> Self:
        await self._line.declare(map(self.queue_of, self._workers))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._line.close()

    async def publish(self, key: Key, body: bytes) -> int:
        """Publish a message; returns its worker when the broker has confirmed it."""
        return (await self.publish_many([(key, body)]))[0]

    async def publish_many(self, records: Iterable[tuple[Key, bytes]]) -> list[int]:
        """Publish messages; returns their workers when all are confirmed. `BrokerAway` says which are not."""
        chosen: list[int] = []
        messages: list[Outgoing] = []
        for key, body in records:
            chosen.append(self._choose(key))
            self._count += 1
            messages.append(Outgoing(self.queue_of(chosen[-1]), body, f"{self._sender}-{self._count}"))
        await self._line.send(messages)
        if self._feedback_every and self._count - self._asked_at >= self._feedback_every:
            await self.ask_queues()
        return chosen

    async def ask_queues(self) -> dict[int, int]:
        """The messages that wait for each worker, without delivered ones; an adaptable grouping gets them too."""
        self._asked_at = self._count
        workers = self.workers
        waiting = await self._line.declare(map(self.queue_of, workers))
        if isinstance(self._grouping, AdaptableGrouping) and workers == self.workers:
            self._grouping.observe_queues(waiting)
        return dict(zip(workers, waiting, strict=True))

    async def join(self, worker: int) -> None:
        """Add a worker; its queue exists before its first message."""
        grouping = self._adaptable()
        await self._line.declare([self.queue_of(worker)])
        grouping.join(worker)
        self._workers = sorted([*self._workers, worker])

    def leave(self, worker: int) -> None:
        """Remove a worker; its queue stays with its messages."""
        self._adaptable().leave(worker)
        self._workers.remove(worker)
        self._line.forget(self.queue_of(worker))

    def _choose(self, key: Key) -> int:
        worker = self._grouping.choose(key, self._clock.monotonic())
        if worker not in self._workers:
            raise UsageError(f"the grouping chose worker {worker}, which is not one of {self._workers}")
        return worker

    def _adaptable(self) -> AdaptableGrouping:
        if isinstance(self._grouping, AdaptableGrouping):
            return self._grouping
        raise UsageError(f"{type(self._grouping).__name__} cannot change its workers while it runs")
