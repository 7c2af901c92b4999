"""The sender names the worker itself (Storm's direct grouping)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from levada.grouping.keys import Key, whole_workers

if TYPE_CHECKING:
    from levada.grouping.keys import Keys, Workers

__all__ = ["DirectGrouping"]


class DirectGrouping:
    """`target` says which worker a key is for; one that is not there is an error, not a lost record."""

    def __init__(self, workers: int, target: Callable[[Key], int]) -> None:
        self.workers = whole_workers(workers)
        self._target = target

    def choose(self, key: Key, now: float = 0.0) -> int:
        worker = self._target(key)
        if not 0 <= worker < self.workers:
            raise ValueError(f"there is no worker {worker} among {self.workers}")
        return worker

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        each = keys.tolist() if isinstance(keys, np.ndarray) else keys
        return np.fromiter((self.choose(key, now) for key in each), np.int64, len(keys))
