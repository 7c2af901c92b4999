"""Two hashed candidates per key, the one this sender has sent less to (PKG).

Source: Nasir et al., "The Power of Both Choices", ICDE 2015; in Storm as PartialKeyGrouping. It breaks down when
one key is worth more than two workers, or when its two hashes meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from levada.grouping.keys import Hasher, Key, whole_workers
from levada.grouping.murmur import MurmurHash

if TYPE_CHECKING:
    from levada.grouping.keys import Keys, Workers

__all__ = ["PartialKeyGrouping"]


class PartialKeyGrouping:
    """Keeps one count per worker; a tie goes to the first candidate."""

    def __init__(self, workers: int, first: Hasher | None = None, second: Hasher | None = None) -> None:
        self.workers = whole_workers(workers)
        self.sent: list[int] = [0] * workers
        self._first = first or MurmurHash(13)
        self._second = second or MurmurHash(17)

    def choose(self, key: Key, now: float = 0.0) -> int:
        one, other = self._first.of(key) % self.workers, self._second.of(key) % self.workers
        chosen = other if self.sent[one] > self.sent[other] else one
        self.sent[chosen] += 1
        return chosen

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        from levada.grouping.batch_partial import less_loaded

        count = np.uint64(self.workers)
        one = (self._first.many(keys) % count).astype(np.int64)
        other = (self._second.many(keys) % count).astype(np.int64)
        sent = np.array(self.sent, np.int64)
        chosen = less_loaded(one, other, sent)
        self.sent = sent.tolist()
        return chosen
