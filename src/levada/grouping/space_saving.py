"""Which keys are frequent, in a fixed number of counters?

Source: Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams"
(ICDT 2005). A key that is not counted takes over the counter of the least counted one; so counts are never too low,
and too high by at most the stream's length over the number of counters. Among equals the one that has had that
count for longest goes.
"""

from __future__ import annotations

__all__ = ["SpaceSaving"]


class SpaceSaving:
    """Keys by hash, in buckets of equal count, so that the least counted is found at once."""

    def __init__(self, counters: int) -> None:
        if counters < 1:
            raise ValueError(f"needs at least one counter, not {counters}")
        self.counters = counters
        self.count: dict[int, int] = {}
        self._buckets: dict[int, dict[int, None]] = {}
        self._least = 1

    def offer(self, key: int) -> int:
        """One more of this key; its count."""
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
