"""Routing of records to workers that join and leave.

A method that can let workers join and leave moves few keys when they do. Any other starts again with the workers
that are left. Counts stay exact in both cases: where a key goes decides only what must be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

from levada.grouping.keys import Key, Keys
from levada.grouping.methods import Grouping


@runtime_checkable
class _Elastic(Protocol):
    """A grouping that can change its workers."""

    def join(self, worker: int) -> None: ...
    def leave(self, worker: int) -> None: ...


def _array(keys: Sequence[Key]) -> Keys:
    """Whole numbers as an array, which is hashed at once; other keys as they are."""
    import numpy as np

    return np.array(keys, np.int64) if keys and all(type(key) is int for key in keys) else keys


class Routing:
    """`make` creates a grouping for a number of workers; `workers` are the names that records are routed to."""

    def __init__(self, make: Callable[[int], Grouping], workers: Iterable[int]) -> None:
        self._make = make
        self._begin(sorted(set(workers)))

    @property
    def workers(self) -> tuple[int, ...]:
        return tuple(self._seats.values())

    def join(self, worker: int) -> None:
        if worker in self.workers:
            raise ValueError(f"worker {worker} is here already")
        if not isinstance(self._grouping, _Elastic):
            return self._begin([*self.workers, worker])
        seat = next(free for free in range(len(self._seats) + 1) if free not in self._seats)
        self._grouping.join(seat)
        self._seats[seat] = worker
        return None

    def leave(self, worker: int) -> None:
        seat = next((seat for seat, name in self._seats.items() if name == worker), None)
        if seat is None:
            raise ValueError(f"there is no worker {worker}")
        if len(self._seats) == 1 or not isinstance(self._grouping, _Elastic):
            return self._begin([name for name in self.workers if name != worker])
        self._grouping.leave(seat)
        del self._seats[seat]
        return None

    def route(self, keys: Sequence[Key], now: float = 0.0, *, batch: bool = False) -> list[int]:
        """A worker for each key; `batch` decides the same over arrays, which needs numpy and numba."""
        if self._grouping is None:
            raise ValueError("there is no worker left: let one join")
        if batch:
            seats: list[int] = self._grouping.choose_many(_array(keys), now).tolist()
        else:
            choose = self._grouping.choose
            seats = [choose(key, now) for key in keys]
        return seats if self._plain else [self._seats[seat] for seat in seats]

    @property
    def _plain(self) -> bool:
        return all(seat == worker for seat, worker in self._seats.items())

    def _begin(self, workers: list[int]) -> None:
        self._seats = dict(enumerate(workers))
        self._grouping: Grouping | None = self._make(len(workers)) if workers else None
