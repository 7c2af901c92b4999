"""Each worker in its turn, whatever the key: perfectly even, and every key everywhere (SG)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from levada.grouping.keys import Key, whole_workers

if TYPE_CHECKING:
    from levada.grouping.keys import Keys, Workers

__all__ = ["ShuffleGrouping"]


class ShuffleGrouping:
    """`first`: where the turn begins, so that several senders need not begin at the same worker."""

    def __init__(self, workers: int, first: int = 0) -> None:
        self.workers = whole_workers(workers)
        self._next = first % workers

    def choose(self, key: Key, now: float = 0.0) -> int:
        chosen = self._next
        self._next = (chosen + 1) % self.workers
        return chosen

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        chosen = (self._next + np.arange(len(keys), dtype=np.int64)) % self.workers
        self._next = (self._next + len(keys)) % self.workers
        return chosen
