"""How does a sender in another engine decide? By a grouping of its own, and in turn for records without a key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from levada.clock import SystemClock
from levada.grouping import Grouping, Key, LevelledGrouping
from levada.ports import Clock

__all__ = ["GroupingSender", "MakeGrouping", "chosen_grouping"]

MakeGrouping: TypeAlias = Callable[[int], Grouping]


def chosen_grouping(secret: bytes, make: MakeGrouping | None) -> MakeGrouping:
    """Ours under this secret, unless told otherwise; tried at once, so that a wrong one fails where it is given."""
    chosen = make or partial(LevelledGrouping, secret=secret)
    chosen(1)
    return chosen


class GroupingSender:
    """One sender's choices among `places`, which are numbered from 0."""

    def __init__(self, make: MakeGrouping, places: int, clock: Clock | None = None) -> None:
        self.places = places
        self._grouping = make(places)
        self._clock = clock or SystemClock()
        self._turn = 0

    def place_of(self, key: Key | None) -> int:
        if key is None:
            return self.next_of(self.places)
        return self._grouping.choose(key, self._clock.monotonic())

    def next_of(self, places: int) -> int:
        """Whose turn it is among so many."""
        self._turn += 1
        return (self._turn - 1) % places
