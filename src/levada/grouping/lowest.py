"""Everything to the worker with the lowest number (Storm's global grouping): for a total that one must see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from levada.grouping.keys import Key, whole_workers

if TYPE_CHECKING:
    from levada.grouping.keys import Keys, Workers

__all__ = ["GlobalGrouping"]


class GlobalGrouping:
    """`workers`: how many, or which."""

    def __init__(self, workers: int | Iterable[int]) -> None:
        named = range(whole_workers(workers)) if isinstance(workers, int) else sorted(workers)
        whole_workers(len(named))
        self._lowest = named[0]

    def choose(self, key: Key, now: float = 0.0) -> int:
        return self._lowest

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        return np.full(len(keys), self._lowest, np.int64)
