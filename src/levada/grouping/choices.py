"""Partial key grouping, D-Choices and W-Choices: a key may use two workers, and a hot key more.

Sources: Nasir et al., "The Power of Both Choices" (ICDE 2015) and "When Two Choices Are not Enough: Balancing at
Scale in Distributed Stream Processing" (ICDE 2016).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from levada.grouping.keys import Hasher, Key, MurmurHash, whole_workers
from levada.grouping.thresholds import SOLVE_EVERY, SOLVE_EVERY_WARM, choices_needed, head_threshold

if TYPE_CHECKING:
    from levada.grouping.batch.choices import ChoicesTable
    from levada.grouping.keys import Keys, Workers


class PartialKeyGrouping:
    """Each key has two workers; a record goes to the one that got fewer, a tie to the first.

    Storm has it under the same name. It fails when one key is worth more than two workers, or when both of a key's
    hashes name the same worker.
    """

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

        from levada.grouping.batch.choices import less_loaded

        count = np.uint64(self.workers)
        one = (self._first.many(keys) % count).astype(np.int64)
        other = (self._second.many(keys) % count).astype(np.int64)
        sent = np.array(self.sent, np.int64)
        chosen = less_loaded(one, other, sent)
        self.sent = sent.tolist()
        return chosen


class SpaceSaving:
    """The most frequent keys of a stream, with a fixed number of counters.

    Source: Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams"
    (ICDT 2005). A new key takes over the counter of the least frequent one. So counts are never too low, and too
    high by at most the length of the stream over the number of counters. Among equal counts the oldest goes. Keys
    are in buckets of equal count, so that the least frequent is found at once.
    """

    def __init__(self, counters: int) -> None:
        if counters < 1:
            raise ValueError(f"needs at least one counter, not {counters}")
        self.counters = counters
        self.count: dict[int, int] = {}
        self._buckets: dict[int, dict[int, None]] = {}
        self._least = 1

    def offer(self, key: int) -> int:
        """Count one more of this key, and return its count."""
        count = self.count.get(key)
        if count is None:
            count = self._evicted() if len(self.count) >= self.counters else 0
        else:
            self._leave(key, count)
        self.count[key] = count + 1
        self._buckets.setdefault(count + 1, {})[key] = None
        if count + 1 < self._least or count == 0:
            self._least = count + 1
        return count + 1

    def _evicted(self) -> int:
        while self._least not in self._buckets:
            self._least += 1
        key = next(iter(self._buckets[self._least]))
        self._leave(key, self._least)
        return self.count.pop(key)

    def _leave(self, key: int, count: int) -> None:
        bucket = self._buckets[count]
        del bucket[key]
        if not bucket:
            del self._buckets[count]


_MASK = (1 << 64) - 1


def nth_choice(hashed: int, which: int, workers: int) -> int:
    """The worker of this choice: one hash, mixed anew for each."""
    word = (hashed + which * 0x9E3779B97F4A7C15) & _MASK
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _MASK
    return (word ^ (word >> 31)) % workers


class DChoicesGrouping:
    """Keys of the head have `choices` workers, all others two; a tie goes to the earlier candidate.

    The head comes from `SpaceSaving`. How many choices it needs is solved every thousand records, and every ten
    thousand once the sender is warm.
    """

    solves = True

    def __init__(self, workers: int, hasher: Hasher | None = None) -> None:
        self.workers = whole_workers(workers)
        self.sent: list[int] = [0] * workers
        self.choices = min(2, workers) if self.solves else workers
        self.threshold = head_threshold(workers)
        self.frequent = SpaceSaving(max(100, 10 * workers))
        self._total = 0
        self._hasher = hasher or MurmurHash()
        self._table: ChoicesTable | None = None

    def choose(self, key: Key, now: float = 0.0) -> int:
        if self._table is not None:
            return int(self.choose_many([key], now)[0])
        hashed = self._hasher.of(key)
        count = self.frequent.offer(hashed)
        self._total += 1
        hot = count > self.threshold * self._total
        chosen = self._least_loaded(hashed, self.choices if hot else min(2, self.workers))
        self.sent[chosen] += 1
        every = SOLVE_EVERY if self._total <= SOLVE_EVERY_WARM else SOLVE_EVERY_WARM
        if self.solves and self._total % every == 0:
            self.choices = choices_needed(self._head(), self.workers)
        return chosen

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        """From the first call on, the state lives in arrays, and `choose` uses them too."""
        if self._table is None:
            from levada.grouping.batch.choices import ChoicesTable

            self._table = ChoicesTable(self.workers, self.frequent.counters, self.solves)
        return self._table.choose(self._hasher.many(keys))

    def _head(self) -> list[float]:
        counts = sorted(self.frequent.count.values(), reverse=True)
        return [count / self._total for count in counts if count > self.threshold * self._total]

    def _least_loaded(self, hashed: int, choices: int) -> int:
        if choices >= self.workers:
            return self.sent.index(min(self.sent))
        best = nth_choice(hashed, 0, self.workers)
        for which in range(1, choices):
            worker = nth_choice(hashed, which, self.workers)
            if self.sent[worker] < self.sent[best]:
                best = worker
        return best


class WChoicesGrouping(DChoicesGrouping):
    """D-Choices with as many choices as there are workers."""

    solves = False
