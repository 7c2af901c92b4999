"""Which keys carry most of the stream now, and how widely may they walk?

Counted are one record in eight, picked by a sequence that no rhythm of the stream can follow, in a bounded table:
Misra and Gries (1982), purged in one go. When too many keys are counted, at least the lesser half is forgotten and
the rest give up as much as those can have had; so no weight is too high, but for the sampling. Weights are in units
that grow with time, so that what is old counts less. Now and then the table is reviewed, and says who is hot.
"""

from __future__ import annotations

from levada.grouping.places import stride_of
from levada.grouping.tuning import Tuning

__all__ = ["SAMPLED", "SHARE_PARTS", "Heads", "Hot", "reviewed_after"]

SAMPLED = 8
SHARE_PARTS = 1024  # of a worker's load, in which the share of hot keys is added up
_LEAST_REVIEW = 8  # turns between two reviews; the first follow each other faster


def reviewed_after(turn: int) -> bool:
    return turn % _LEAST_REVIEW == 0 or turn & (turn - 1) == 0


class Hot:
    """What a hot key does: how small its steps are, how far and by which stride it looks, how long it sends without
    looking, and whether it looks at loads alone."""

    __slots__ = ("ease", "left", "presses", "reach", "run", "stride", "worker")

    def __init__(self, hashed: int, worth: float, workers: int, tuning: Tuning) -> None:
        self.ease = tuning.ease / worth
        self.reach = int(tuning.reach * worth)
        self.stride = stride_of(hashed, workers)
        self.run = int(tuning.run * worth)
        self.presses = worth > tuning.sway * workers
        self.worker = self.left = 0


class Heads:
    """`weight` by hash for what is counted, `hot` by hash for what is hot since the last review."""

    def __init__(self, workers: int, tuning: Tuning) -> None:
        self.most = tuning.most_heads(workers)
        self._workers = workers
        self.weight: dict[int, float] = {}
        self.hot: dict[int, Hot] = {}
        self._tuning = tuning

    def count(self, hashed: int, amount: float) -> None:
        self.weight[hashed] = self.weight.get(hashed, 0.0) + SAMPLED * amount
        if len(self.weight) > self.most:
            self._purge()

    def review(self, worth: float) -> float:
        """`worth`: workers that a weight of 1 is worth. Returns the share of the stream that is hot."""
        hot = self._tuning.hot
        self.hot = {
            hashed: Hot(hashed, weight * worth, self._workers, self._tuning)
            for hashed, weight in self.weight.items()
            if weight * worth > hot
        }
        # In whole parts: their sum is the same in whichever order they are added.
        parts = sum(int(SHARE_PARTS * self.weight[hashed] * worth) for hashed in self.hot)
        return parts / (SHARE_PARTS * self._workers)

    def rescale(self, down: float) -> None:
        self.weight = {hashed: weight * down for hashed, weight in self.weight.items()}

    def resize(self, workers: int) -> None:
        self.most = self._tuning.most_heads(workers)
        self._workers = workers
        while len(self.weight) > self.most:
            self._purge()

    def _purge(self) -> None:
        cut = min(self.weight.values())
        while sum(weight > cut for weight in self.weight.values()) > len(self.weight) / 2:
            cut *= 2.0
        self.weight = {hashed: weight - cut for hashed, weight in self.weight.items() if weight > cut}
