"""How high does each worker stand? Its load at this sender, and what it took to even it out.

A worker's level has two parts. The base rises while the worker is loaded above its target and falls while it is
below, fast where the excess is certain and slowly where it may be chance: so the tolerance sets itself, wide while
little is known and narrow later. It is slower, too, the more of the stream is hot keys: they leave at a small rise,
and a level that overshoots sends them further than they need to go. The rest is a small share of the load of this
window, so that the next record already notices the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from levada.grouping.tuning import Tuning

__all__ = ["Levels"]

_BOUND = 4.0  # no key is further than 2 from its home, so a higher level changes nothing
_RESCALE_FROM = 1e9
_PRETENDED = 0.02  # of a window: the even load that every sender begins with
_LEAST_TARGET, _MOST_TARGET = 0.05, 4.0  # times the even share
_QUEUE_SLACK = 16.0  # records in a queue that say nothing yet


class Levels:
    """One sender's view of its workers, by place; weights are in units that grow by the turn."""

    def __init__(self, workers: int, tuning: Tuning) -> None:
        self.tuning = tuning
        self.grow = 1.0
        self.turns = 0
        self.hot = 0.0  # share of the stream that hot keys have
        self.turn = self.left = 0
        self.gain = self.growth = self._window = 0.0
        self._pace(workers)
        self.load = [_PRETENDED * self._window / workers] * workers
        self.squares = _PRETENDED * self._window
        self.base = [0.0] * workers
        self.target = [1.0 / workers] * workers
        self.speed = [1.0] * workers
        self._set()

    def settle(self) -> float:
        """The end of a turn; returns what weights elsewhere must be multiplied with, mostly 1."""
        down = self._rescale() if self.grow > _RESCALE_FROM else 1.0
        self._rise()
        self._set()
        self.grow *= self.growth
        self.left = self.turn
        self.turns += 1
        return down

    def change(self, before: Sequence[int | None]) -> float:
        """Other workers: for each, its place until now, or None if it is new. Returns what `settle` does."""
        down = self._rescale()
        even = self._total() / len(self.load)
        self._pace(len(before))
        self.load = [even if place is None else self.load[place] for place in before]
        self.base = [0.0 if place is None else self.base[place] for place in before]
        self.speed = [1.0 if place is None else self.speed[place] for place in before]
        self.target = [1.0 / len(before)] * len(before)
        self._set()
        return down

    def told(self, queues: Sequence[float]) -> None:
        """True queue lengths: who has more waiting than the others gets less, at once and, in time, for good."""
        mean = sum(queues) / len(queues)
        targets = []
        for place, queue in enumerate(queues):
            longer = max(-1.0, min(1.0, (queue - mean) / (mean + _QUEUE_SLACK)))
            self.speed[place] *= 1.0 - 0.05 * longer
            targets.append(self.speed[place] * (1.0 - 0.5 * longer))
        even = sum(self.speed) / len(queues)
        self.speed = [max(_LEAST_TARGET, min(_MOST_TARGET, speed / even)) for speed in self.speed]
        whole = sum(targets)
        self.target = [target / whole for target in targets]

    def _pace(self, workers: int) -> None:
        self.turn = self.left = self.tuning.records_per_turn(workers)
        self._window = self.tuning.records_per_window(workers)
        self.gain = self.tuning.gain * self.turn / self._window
        self.growth = 1.0 / (1.0 - self.turn / self._window)

    def _rescale(self) -> float:
        down = 1.0 / self.grow
        self.load = [load * down for load in self.load]
        self.squares *= down * down
        self.grow = 1.0
        return down

    def _rise(self) -> None:
        total = self._total()
        records = total * total / self.squares
        surety, calm = self.tuning.surety, self.tuning.calm
        cold = max(0.0, 1.0 - self.hot)
        cold *= cold
        gain = self.gain * (calm + (1.0 - calm) * (cold * cold))
        mean = 0.0
        for place, load in enumerate(self.load):
            excess = load / (total * self.target[place]) - 1.0
            sure = abs(excess) * sqrt(records * self.target[place]) / surety
            self.base[place] += gain * excess * min(1.0, sure)
            mean += self.base[place]
        mean /= len(self.load)
        self.base = [min(_BOUND, max(-_BOUND, base - mean)) for base in self.base]

    def _set(self) -> None:
        total = self._total()
        self.unit = [self.tuning.touch / (total * target) for target in self.target]
        self.level = [base + unit * load for base, unit, load in zip(self.base, self.unit, self.load, strict=True)]
        self.worth = len(self.load) / total

    def _total(self) -> float:
        total = 0.0  # added up in order: `sum` would round otherwise than the compiled loop
        for load in self.load:
            total += load
        return total
