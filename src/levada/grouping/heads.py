"""Which keys carry most of the stream now, and how widely may they walk?

Counted are one record in eight, picked by a sequence that no rhythm of the stream can follow, in a bounded table:
Misra and Gries (1982), purged in one go. When too many keys are counted, at least the lesser half is forgotten and
the rest give up as much as those can have had; so no weight is too high, but for the sampling. Weights are in units
that grow with time, so that what is old counts less. Now and then the table is reviewed, and says who is hot.
"""

from __future__ import annotations

from levada.grouping.tuning import Tuning

__all__ = ["PRESSING_RUN", "SAMPLED", "Heads", "Hot", "reviewed_after"]

SAMPLED = 8
PRESSING_RUN = 2  # records in a row from which a key is so hot that it looks at loads alone
_LEAST_REVIEW = 8  # turns between two reviews; the first follow each other faster


def reviewed_after(turn: int) -> bool:
    return turn % _LEAST_REVIEW == 0 or turn & (turn - 1) == 0


class Hot:
    """What a hot key does: how small its steps are, how far it looks, how long it sends without looking."""

    __slots__ = ("ease", "left", "reach", "run", "worker")

    def __init__(self, worth: float, tuning: Tuning) -> None:
        ease = tuning.ease / worth
        self.ease = ease * ease
        self.reach = int(tuning.reach * worth)
        self.run = int(tuning.run * worth)
        self.worker = self.left = 0


class Heads:
    """`weight` by hash for what is counted, `hot` by hash for what is hot since the last review."""

    def __init__(self, workers: int, tuning: Tuning) -> None:
        self.most = tuning.most_heads(workers)
        self.weight: dict[int, float] = {}
        self.hot: dict[int, Hot] = {}
        self._tuning = tuning

    def count(self, hashed: int, amount: float) -> None:
        self.weight[hashed] = self.weight.get(hashed, 0.0) + SAMPLED * amount
        if len(self.weight) > self.most:
            self._purge()

    def review(self, worth: float) -> None:
        """`worth`: workers that a weight of 1 is worth."""
        hot = self._tuning.hot
        self.hot = {
            hashed: Hot(weight * worth, self._tuning)
            for hashed, weight in self.weight.items()
            if weight * worth > hot
        }

    def rescale(self, down: float) -> None:
        self.weight = {hashed: weight * down for hashed, weight in self.weight.items()}

    def resize(self, workers: int) -> None:
        self.most = self._tuning.most_heads(workers)
        while len(self.weight) > self.most:
            self._purge()

    def _purge(self) -> None:
        cut = min(self.weight.values())
        while sum(weight > cut for weight in self.weight.values()) > len(self.weight) / 2:
            cut *= 2.0
        self.weight = {hashed: weight - cut for hashed, weight in self.weight.items() if weight > cut}
