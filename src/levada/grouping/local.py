"""Workers in the sender's own process in turn, all of them if it has none (Storm's local-or-shuffle)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from levada.grouping.keys import Key, whole_workers
from levada.grouping.shuffle import ShuffleGrouping

if TYPE_CHECKING:
    from levada.grouping.keys import Keys, Workers

__all__ = ["LocalOrShuffleGrouping"]


class LocalOrShuffleGrouping:
    """`here`: the workers of this process."""

    def __init__(self, workers: int, here: Iterable[int] = ()) -> None:
        whole_workers(workers)
        own = sorted(set(here))
        if own and not 0 <= own[0] <= own[-1] < workers:
            raise ValueError(f"the workers of this process, {own}, are not all among {workers}")
        self._targets = own or list(range(workers))
        self._turn = ShuffleGrouping(len(self._targets))

    def choose(self, key: Key, now: float = 0.0) -> int:
        return self._targets[self._turn.choose(key, now)]

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        return np.array(self._targets, np.int64)[self._turn.choose_many(keys, now)]
