"""When are the partial counts of all workers one exact count? The aggregators' side of a round.

A flush says of which round and worker it is. A round's number is never used twice, not even when the same records
are counted again after a worker's death, so a flush that comes again, late, or from a round that was given up
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

__all__ = ["Flush", "Merging"]

CountKey = TypeVar("CountKey", bound=Hashable)


class Flush(NamedTuple, Generic[CountKey]):
    """What a worker has counted in a round: handed over whole, once it gets no more records of that round."""

    round: int
    worker: int
    counts: Mapping[CountKey, int]


class Merging(Generic[CountKey]):
    """`aggregators` share the keys by `part` of a key (key grouping: each key is merged in one place)."""

    def __init__(self, aggregators: int = 1, part: Callable[[CountKey], int] = lambda key: 0) -> None:
        if aggregators < 1:
            raise ValueError(f"counts need at least one aggregator, not {aggregators}")
        self._aggregators = aggregators
        self._part = part
        self.open(0)

    def open(self, round: int) -> None:
        """Begin this round; whatever was handed over before belongs to another."""
        self.round = round
        self._from: set[int] = set()
        self._counts: list[dict[CountKey, int]] = [{} for _ in range(self._aggregators)]

    def take(self, flush: Flush[CountKey]) -> bool:
        """Whether it was new: of this round, and the worker's first."""
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
        """All counts of the round that came to something."""
        return {key: count for counts in self._counts for key, count in counts.items() if count}
