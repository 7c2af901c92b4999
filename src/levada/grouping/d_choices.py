"""Hot keys get as many hashed choices as they need, all others two (D-Choices).

Source: Nasir et al., "When Two Choices Are not Enough" (ICDE 2016). Heads come from a SpaceSaving sketch; how many
choices they need is solved anew every thousand records, and every ten thousand once the sender is warm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from levada.grouping.choice_count import choices_needed, head_threshold
from levada.grouping.keys import Hasher, Key, whole_workers
from levada.grouping.murmur import MurmurHash
from levada.grouping.space_saving import SpaceSaving

if TYPE_CHECKING:
    from levada.grouping.batch_choices import ChoicesTable
    from levada.grouping.keys import Keys, Workers

__all__ = ["DChoicesGrouping", "nth_choice"]

SOLVE_EVERY, SOLVE_EVERY_WARM = 1_000, 10_000
_MASK = (1 << 64) - 1


def nth_choice(hashed: int, which: int, workers: int) -> int:
    """The worker of this choice: one hash, stirred anew for each."""
    word = (hashed + which * 0x9E3779B97F4A7C15) & _MASK
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _MASK
    return (word ^ (word >> 31)) % workers


class DChoicesGrouping:
    """`choices` is what the head has now; a tie goes to the earlier candidate."""

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
        if (
            self.solves
            and self._total % (SOLVE_EVERY if self._total <= SOLVE_EVERY_WARM else SOLVE_EVERY_WARM) == 0
        ):
            self.choices = choices_needed(self._head(), self.workers)
        return chosen

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        """From the first call on, the state lives in arrays, and `choose` goes through them too."""
        if self._table is None:
            from levada.grouping.batch_choices import ChoicesTable

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
