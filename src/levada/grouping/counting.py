"""How is a stream counted exactly by workers that each hold a part, and come, go and die?

Two phases (the thesis's workers and aggregators): records go to workers by a grouping, workers hold partial counts
per key, a flush hands these over, aggregators merge them by key. The stream is a log that can be read again from
any position, so counting goes in rounds: between two barriers records are sent, at the barrier all workers flush,
and the merged round is committed together with the log's position. If a worker dies with counts in its hands, the
round is given up and its records are sent again to those that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from sys import getsizeof
from typing import Generic, TypeVar

from levada.grouping.keys import Key
from levada.grouping.merging import Flush, Merging
from levada.grouping.routing import Routing

__all__ = ["TwoPhaseCount"]

CountKey = TypeVar("CountKey", bound=Hashable)

_SOME = 50


class TwoPhaseCount(Generic[CountKey]):
    """`sent` counts the records of the round under way: the caller's place in the log is the committed position
    and so many records more. When a death makes it 0 again, the caller sends from the committed position."""

    def __init__(
        self, routing: Routing, aggregators: int = 1, part: Callable[[CountKey], int] = lambda key: 0
    ) -> None:
        self._routing = routing
        self._merging: Merging[CountKey] = Merging(aggregators, part)
        self._partial: dict[int, dict[CountKey, int]] = {}
        self._awaited: set[int] = set()
        self.sent = 0
        self._begin()

    @property
    def workers(self) -> tuple[int, ...]:
        return self._routing.workers

    @property
    def round(self) -> int:
        return self._merging.round

    @property
    def held(self) -> int:
        """How many partial counts the workers hold."""
        return sum(map(len, self._partial.values()))

    @property
    def held_bytes(self) -> int:
        """About what these take: the tables, and for each key as much as for the first few."""
        tables = sum(map(getsizeof, self._partial.values()))
        some = [getsizeof(key) for held in self._partial.values() for key in islice(held, _SOME)]
        return tables + (self.held * sum(some) // len(some) if some else 0)

    def send(
        self, keys: Sequence[Key], counts: Sequence[tuple[CountKey, int]], *, batch: bool = False
    ) -> list[int]:
        """Records: by what each is grouped, and what it adds to which count; the worker that each went to."""
        if self._awaited:
            raise ValueError("the round is at its barrier: commit it first")
        chosen = self._routing.route(keys, batch=batch)
        partial = self._partial
        for worker, (key, amount) in zip(chosen, counts, strict=True):
            held = partial[worker]
            held[key] = held.get(key, 0) + amount
        self.sent += len(chosen)
        return chosen

    def join(self, worker: int) -> None:
        """A worker comes, empty-handed, under a name that nobody had in this round."""
        if self._merging.has(worker):
            raise ValueError(f"worker {worker} has left this round: join under another name, or in the next round")
        self._routing.join(worker)
        self._partial[worker] = {}

    def leave(self, worker: int) -> Flush[CountKey]:
        """A worker goes in peace: it gets no more records, and hands over what it holds."""
        self._routing.leave(worker)
        flush = self._flush(worker)
        self._merging.take(flush)
        del self._partial[worker]
        return flush

    def die(self, worker: int) -> None:
        """A worker is gone with what it held; unless that was handed over, the round begins again."""
        self._routing.leave(worker)
        del self._partial[worker]
        if not self._merging.has(worker):
            self._begin()

    def flushes(self) -> list[Flush[CountKey]]:
        """The barrier: no more records until the round is committed; what each worker hands over."""
        self._awaited = self._awaited or set(self._partial)
        return [self._flush(worker) for worker in self._awaited & set(self._partial)]

    def take(self, flush: Flush[CountKey]) -> bool:
        """A flush arrives; False if it changes nothing, because it was here before or belongs to another round."""
        return self._merging.take(flush)

    def commit(self) -> dict[CountKey, int]:
        """The exact counts of the round, to be stored together with the position; the next round begins."""
        if missing := self._merging.missing(self._awaited or set(self._partial)):
            raise ValueError(f"workers {sorted(missing)} have not handed over yet")
        merged = self._merging.merged()
        self._begin()
        return merged

    def barrier(self) -> dict[CountKey, int]:
        """Everybody flushes, everything arrives, the round is committed."""
        for flush in self.flushes():
            self.take(flush)
        return self.commit()

    def _flush(self, worker: int) -> Flush[CountKey]:
        return Flush(self.round, worker, dict(self._partial[worker]))

    def _begin(self) -> None:
        self._merging.open(self.round + 1)
        self._partial = {worker: {} for worker in self.workers}
        self._awaited = set()
        self.sent = 0
