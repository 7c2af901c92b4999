"""Grouping for a sender in another engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from levada.core.clock import SystemClock
from levada.core.protocols import Clock
from levada.grouping import Grouping, Key, LevelledGrouping

MakeGrouping: TypeAlias = Callable[[int], Grouping]


def chosen_grouping(secret: bytes, make: MakeGrouping | None) -> MakeGrouping:
    """`make`, or levelled grouping with this secret; tried at once, so that a wrong one fails here."""
    chosen = make or partial(LevelledGrouping, secret=secret)
    chosen(1)
    return chosen


class GroupingSender:
    """The choices of one sender among `places`, numbered from 0."""

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
        """The next of so many places, in turn."""
        self._turn += 1
        return (self._turn - 1) % places
