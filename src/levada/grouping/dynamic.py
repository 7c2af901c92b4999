"""Dynamic key grouping, as the thesis coded it and as its text describes it.

Source: the Dynamic Key Grouping thesis (2018), its table 1 and the periods of its sweeps. A key starts with two
neighbouring workers. A hot key whose best worker is full gets the next worker too; a key whose workers have room
gives one back. The code differs from the text: it cuts loads and threshold to whole percents, and it checks a key
once a minute and changes it by one step. `DynamicKeyGrouping` follows the code, `DynamicTextGrouping` the text.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from levada.grouping.keys import Hasher, Key, MurmurHash, whole_workers
from levada.grouping.thresholds import CHECK, LEAST_WIDTH, MIDDLE_SWEEP, WARM_UP, YOUNG_SWEEP, threshold_percent

if TYPE_CHECKING:
    from levada.grouping.batch.dynamic import DynamicTable
    from levada.grouping.keys import Keys, Workers


class Generations:
    """The counted keys in three generations; the old ones are hot.

    A new key is young. Sweeps move the most frequent up, from young to middle and from middle to old, in exchange
    for the least frequent. `capacity` is split 10 : 40 : 50. Old and middle are hard limits, young may grow between
    sweeps. The thesis also stores when a key was last seen, but no rule of it uses that.
    """

    def __init__(self, capacity: int = 100) -> None:
        if capacity < 1:
            raise ValueError(f"the key space needs room for at least one key, not {capacity}")
        self.old_size = capacity // 10
        self.middle_size = capacity * 4 // 10
        self.young_size = capacity - self.old_size - self.middle_size
        self.old: dict[int, int] = {}
        self.middle: dict[int, int] = {}
        self.young: dict[int, int] = {}

    def count(self, key: int) -> None:
        for generation in (self.old, self.middle):
            if key in generation:
                generation[key] += 1
                return
        self.young[key] = self.young.get(key, 0) + 1

    def sweep_young(self) -> None:
        """Every 15 seconds: exchange the best of young for the worst of middle, and cut young to its size."""
        kept = sorted(self.young.items(), key=_most_counted)[: self.young_size]
        self.young = dict(kept)
        _exchange(self.young, self.middle, self.middle_size)

    def sweep_middle(self) -> None:
        """Every 60 seconds: exchange the best of middle for the worst of old."""
        _exchange(self.middle, self.old, self.old_size)


def _exchange(lower: dict[int, int], upper: dict[int, int], size: int) -> None:
    rising = sorted(lower.items(), key=_most_counted)
    falling = sorted(upper.items(), key=_least_counted)
    room = size - len(upper)
    for key, _ in rising[:room]:
        upper[key] = lower.pop(key)
    for (key, count), (worst, least) in zip(rising[room:], falling, strict=False):
        if count <= least:
            break
        del lower[key], upper[worst]
        upper[key], lower[worst] = count, least


def _most_counted(item: tuple[int, int]) -> tuple[int, int]:
    return -item[1], item[0]


def _least_counted(item: tuple[int, int]) -> tuple[int, int]:
    return item[1], item[0]


class DynamicKeyGrouping:
    """The thesis's code. `width`: how many workers a key uses, by hash, where it is more than two."""

    whole_percents = True

    def __init__(self, workers: int, hasher: Hasher | None = None, capacity: int = 100) -> None:
        self.workers = whole_workers(workers)
        self.hot = Generations(capacity)
        self.width: dict[int, int] = {}
        self.sent: list[int] = [0] * workers
        self._total = 0
        self._checked: dict[int, float] = {}  # every key, as in the thesis: the memory is not bounded
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
        """From the first call on, the state lives in arrays, and `choose` uses them too."""
        if self._table is None:
            from levada.grouping.batch.dynamic import DynamicTable

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
        if not warm or now < self._checked.get(hashed, -inf) + CHECK:
            return best
        self._checked[hashed] = now
        if self._load(best) < self._threshold:
            return self._least_loaded(home, self._shrunk(hashed, home, width))
        return self._grown(hashed, home, width, best)

    def _grown(self, hashed: int, home: int, width: int, best: int) -> int:
        """Give a hot key the next worker, if that one is less loaded."""
        further = (home + width) % self.workers
        if hashed in self.hot.old and width < self.workers and self._load(further) < self._load(best):
            self.width[hashed] = width + 1
            return further
        return best

    def _shrunk(self, hashed: int, home: int, width: int) -> int:
        """Take away one worker while two have room: once, or by the text as often as possible."""
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


class DynamicTextGrouping(DynamicKeyGrouping):
    """The thesis's text: exact loads, and several steps back at once. Its tables do not come from this."""

    whole_percents = False
