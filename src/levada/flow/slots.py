"""How many pages may be asked for at the same time? The workers of the fetch stage.

A slot is no process: one more or fewer costs nothing, and whoever has one keeps it until its answer is there.
"""

from __future__ import annotations

from collections.abc import Callable

from levada.ports import Clock
from levada.records import Crew

__all__ = ["FetchSlots"]


class FetchSlots:
    """`waiting` tells how many pages wait for nothing but a slot; a second is one of the wall."""

    def __init__(self, most: int, clock: Clock, speed: float, waiting: Callable[[], int]) -> None:
        self.most = most
        self.limit = most
        self.under_way = 0
        self._clock = clock
        self._speed = speed
        self._waiting = waiting
        self._begun = self._done = 0
        self._work = 0.0
        self._since = self._wall()

    @property
    def free(self) -> bool:
        return self.under_way < self.limit

    def begin(self) -> None:
        self._count_work()
        self.under_way += 1
        self._begun += 1

    def end(self) -> None:
        self._count_work()
        self.under_way -= 1
        self._done += 1

    def look(self) -> Crew:
        self._count_work()
        return Crew(
            queue=0 if self.free else self._waiting(),
            on=self.limit,
            busy=self.under_way,
            arrived=self._begun,
            done=self._done,
            work=self._work,
        )

    def resize(self, wanted: int) -> None:
        self.limit = min(max(1, wanted), self.most)

    def _count_work(self) -> None:
        now = self._wall()
        self._work += self.under_way * (now - self._since)
        self._since = now

    def _wall(self) -> float:
        return self._clock.monotonic() / self._speed
