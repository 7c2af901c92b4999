"""Always the same worker for the same key: no merging, and a hot key's worker drowns (KG)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from levada.grouping.keys import Hasher, Key, whole_workers
from levada.grouping.murmur import MurmurHash

if TYPE_CHECKING:
    from levada.grouping.keys import Keys, Workers

__all__ = ["KeyGrouping"]


class KeyGrouping:
    """`hash(key) % workers`."""

    def __init__(self, workers: int, hasher: Hasher | None = None) -> None:
        self.workers = whole_workers(workers)
        self._hasher = hasher or MurmurHash()

    def choose(self, key: Key, now: float = 0.0) -> int:
        return self._hasher.of(key) % self.workers

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        return (self._hasher.many(keys) % np.uint64(self.workers)).astype(np.int64)
