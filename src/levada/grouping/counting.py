"""Exact two-phase counts by workers that join, leave and die.

Records go to workers by a grouping, workers hold partial counts per key, and aggregators merge them by key (the
workers and aggregators of the Dynamic Key Grouping thesis). The stream is a log that can be read again from any
position, so counting goes in rounds: between two barriers records are sent, at the barrier all workers flush, and
the merged round is committed together with the position of the log. If a worker dies with counts that it did not
flush, the round is given up and its records are sent again to the workers that are left.

A flush names its round and its worker. The number of a round is never used twice, not even when the same records
are counted again. So a flush that arrives twice, late, or from a round that was given up changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from itertools import islice
from sys import getsizeof
from typing import Generic, NamedTuple, TypeVar

from levada.grouping.keys import Key
from levada.grouping.routing import Routing

CountKey = TypeVar("CountKey", bound=Hashable)


class Flush(NamedTuple, Generic[CountKey]):
    """Everything that a worker counted in a round, sent when it gets no more records of that round."""

    round: int
    worker: int
    counts: Mapping[CountKey, int]


class Merging(Generic[CountKey]):
    """Merges the flushes of one round; `part` of a key says which of the `aggregators` merges it."""

    def __init__(self, aggregators: int = 1, part: Callable[[CountKey], int] = lambda key: 0) -> None:
        if aggregators < 1:
            raise ValueError(f"counts need at least one aggregator, not {aggregators}")
        self._aggregators = aggregators
        self._part = part
        self.open(0)

    def open(self, round: int) -> None:
        """Start this round, and forget the flushes of any other."""
        self.round = round
        self._from: set[int] = set()
        self._counts: list[dict[CountKey, int]] = [{} for _ in range(self._aggregators)]

    def take(self, flush: Flush[CountKey]) -> bool:
        """Merge a flush; False if it is of another round, or not the first of its worker."""
        if flush.round != self.round or flush.worker in self._from:
            return False
        self._from.add(flush.worker)
        for key, amount in flush.counts.items():
            counts = self._counts[self._part(key) % self._aggregators if self._aggregators > 1 else 0]
            counts[key] = counts.get(key, 0) + amount
        return True

    def has(self, worker: int) -> bool:
        return worker in self._from

    def missing(self, workers: Collection[int]) -> set[int]:
        return set(workers) - self._from

    def merged(self) -> dict[CountKey, int]:
        """All counts of the round that are not 0."""
        return {key: count for counts in self._counts for key, count in counts.items() if count}


_SOME = 50  # keys of a worker whose size is measured


class TwoPhaseCount(Generic[CountKey]):
    """The rounds of a count. `sent` is the number of records of this round: the caller's place in the log is the
    committed position plus `sent`. When a death makes it 0, the caller sends again from the committed position."""

    def __init__(self, routing: Routing, aggregators: int = 1, part: Callable[[CountKey], int] = lambda key: 0) -> None:
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
        """Estimated size of these: the tables, and the mean size of the first keys for each key."""
        tables = sum(map(getsizeof, self._partial.values()))
        some = [getsizeof(key) for held in self._partial.values() for key in islice(held, _SOME)]
        return tables + (self.held * sum(some) // len(some) if some else 0)

    def send(self, keys: Sequence[Key], counts: Sequence[tuple[CountKey, int]], *, batch: bool = False) -> list[int]:
        """Send records, each with its key for the grouping and what it adds to which count; their workers."""
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
        """Add a worker without counts, under a name that no worker has had in this round."""
        if self._merging.has(worker):
            raise ValueError(f"worker {worker} has left this round: join under another name, or in the next round")
        self._routing.join(worker)
        self._partial[worker] = {}

    def leave(self, worker: int) -> Flush[CountKey]:
        """Remove a worker in order: it gets no more records and flushes its counts."""
        self._routing.leave(worker)
        flush = self._flush(worker)
        self._merging.take(flush)
        del self._partial[worker]
        return flush

    def die(self, worker: int) -> None:
        """Remove a worker that died; unless it had flushed, the round starts again."""
        self._routing.leave(worker)
        del self._partial[worker]
        if not self._merging.has(worker):
            self._begin()

    def flushes(self) -> list[Flush[CountKey]]:
        """The barrier: the flush of each worker; no more records until the round is committed."""
        self._awaited = self._awaited or set(self._partial)
        return [self._flush(worker) for worker in self._awaited & set(self._partial)]

    def take(self, flush: Flush[CountKey]) -> bool:
        """Merge a flush that arrives; False if it came before or belongs to another round."""
        return self._merging.take(flush)

    def commit(self) -> dict[CountKey, int]:
        """The exact counts of the round, to be stored together with the position; starts the next round."""
        if missing := self._merging.missing(self._awaited or set(self._partial)):
            raise ValueError(f"workers {sorted(missing)} have not handed over yet")
        merged = self._merging.merged()
        self._begin()
        return merged

    def barrier(self) -> dict[CountKey, int]:
        """All workers flush, and the round is committed."""
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
