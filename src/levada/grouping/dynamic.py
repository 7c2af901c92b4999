"""As many neighbouring workers per key as it needs, given back when it cools down (DKG), as the thesis coded it.

Source: the Dynamic Key Grouping thesis (2018). Its code differs from its text: loads and threshold are cut to whole
percents, and a key is looked at for growing or shrinking once a minute, by one step. `DynamicTextGrouping` is the
text's reading.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from levada.grouping.generations import Generations
from levada.grouping.keys import Hasher, Key, whole_workers
from levada.grouping.murmur import MurmurHash
from levada.grouping.thresholds import (
    CHECK,
    LEAST_WIDTH,
    MIDDLE_SWEEP,
    WARM_UP,
    YOUNG_SWEEP,
    threshold_percent,
)

if TYPE_CHECKING:
    from levada.grouping.batch_dynamic import DynamicTable
    from levada.grouping.keys import Keys, Workers

__all__ = ["DynamicKeyGrouping"]


class DynamicKeyGrouping:
    """`width` holds the keys (by hash) that use more than two workers, and how many."""

    whole_percents = True

    def __init__(self, workers: int, hasher: Hasher | None = None, capacity: int = 100) -> None:
        self.workers = whole_workers(workers)
        self.hot = Generations(capacity)
        self.width: dict[int, int] = {}
        self.sent: list[int] = [0] * workers
        self._total = 0
        self._looked: dict[int, float] = {}  # every key, as in the thesis: this method's memory is not bounded
        self._started: float | None = None
        self._young_due = self._middle_due = 0.0
        self._threshold = self._cut(threshold_percent(workers))
        self._hasher = hasher or MurmurHash()
        self._table: DynamicTable | None = None

    def choose(self, key: Key, now: float) -> int:
        if self._table is not None:
            return int(self.choose_many([key], now)[0])
        hashed = self._hasher.of(key)
        self._sweep(now)
        self.hot.count(hashed)
        chosen = self._choose(hashed, now)
        self.sent[chosen] += 1
        self._total += 1
        return chosen

    def choose_many(self, keys: Keys, now: float) -> Workers:
        """From the first call on, the state lives in arrays, and `choose` goes through them too."""
        if self._table is None:
            from levada.grouping.batch_dynamic import DynamicTable

            self._table = DynamicTable(self.workers, self.hot, self.whole_percents)
        return self._table.choose(self._hasher.many(keys), now)

    def width_of(self, key: Key) -> int:
        """How many workers this key may use now."""
        hashed = self._hasher.of(key)
        if self._table is not None:
            return self._table.width_of(hashed)
        return self.width.get(hashed, min(LEAST_WIDTH, self.workers))

    def _sweep(self, now: float) -> None:
        if self._started is None:
            self._started = now
            self._young_due, self._middle_due = now + YOUNG_SWEEP, now + MIDDLE_SWEEP
        if now >= self._young_due:
            self.hot.sweep_young()
            self._young_due = now + YOUNG_SWEEP
        if now >= self._middle_due:
            self.hot.sweep_middle()
            self._middle_due = now + MIDDLE_SWEEP

    def _choose(self, hashed: int, now: float) -> int:
        home = hashed % self.workers
        width = self.width.get(hashed, min(LEAST_WIDTH, self.workers))
        best = self._least_loaded(home, width)
        warm = now - (self._started or 0.0) >= WARM_UP
        if not warm or now < self._looked.get(hashed, -inf) + CHECK:
            return best
        self._looked[hashed] = now
        if self._load(best) < self._threshold:
            return self._least_loaded(home, self._narrowed(hashed, home, width))
        return self._widened(hashed, home, width, best)

    def _widened(self, hashed: int, home: int, width: int, best: int) -> int:
        """The next worker, if the key is hot and that worker has less to do."""
        further = (home + width) % self.workers
        if hashed in self.hot.old and width < self.workers and self._load(further) < self._load(best):
            self.width[hashed] = width + 1
            return further
        return best

    def _narrowed(self, hashed: int, home: int, width: int) -> int:
        """One step back if two of its workers have room; as the text has it, as many as there are."""
        while width > LEAST_WIDTH and self._roomy(home, width) >= 2:
            width -= 1
            self.width[hashed] = width
            if self.whole_percents:
                break
        if width == LEAST_WIDTH:
            self.width.pop(hashed, None)
        return width

    def _roomy(self, home: int, width: int) -> int:
        return sum(self._load((home + step) % self.workers) < self._threshold for step in range(width))

    def _least_loaded(self, home: int, width: int) -> int:
        best = home
        for step in range(1, width):
            worker = (home + step) % self.workers
            if self._load(worker) < self._load(best):
                best = worker
        return best

    def _load(self, worker: int) -> float:
        return self._cut(100.0 * self.sent[worker] / self._total) if self._total else 0.0

    def _cut(self, percent: float) -> float:
        return float(int(percent)) if self.whole_percents else percent
