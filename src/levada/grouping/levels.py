"""Places, levels and hot keys: the state that levelled grouping decides from.

A key has one place, a home worker and a stride to the others. Every worker has a level that rises with its load. Hot
keys are sampled and may use more workers than their home.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import gcd, sqrt
from typing import NamedTuple


class Tuning(NamedTuple):
    """Constants of the method. None depends on the stream: loads are relative, time is counted in records."""

    window: float = 500.0  # records per worker after which a load counts 1/e
    turn: float = 2.0  # records per worker between two updates of the levels, and 128 at least
    gain: float = 2.0  # how much a level rises per window with a load of twice the target
    calm: float = 0.25  # how much of that if the whole stream is hot keys, whose steps are small
    surety: float = 3.0  # standard errors from which an excess counts in full
    touch: float = 0.05  # how much of the excess of this window counts at once
    press: float = 1000.0  # times as much, for a key that dominates the levels
    sway: float = 0.25  # share of the stream from which a key dominates the levels
    hot: float = 1.0  # share of one worker's load from which a key is hot
    ease: float = 0.3  # length of a hot key's steps, times its worth in workers
    run: float = 1.0  # records of a hot key in a row to one worker, per worker of worth
    reach: float = 6.0  # workers beyond the first three that a hot key considers, per worker of worth
    heads: float = 16.0  # counted keys per worker, and 64 more

    def records_per_turn(self, workers: int) -> int:
        return max(128, int(self.turn * workers))

    def records_per_window(self, workers: int) -> float:
        """At least as long as sixteen turns, so that one turn is a small part of it."""
        return max(self.window * workers, 16.0 * self.records_per_turn(workers))

    def most_heads(self, workers: int) -> int:
        return int(self.heads * workers) + 64


# Both prime, so that every stride meets every slot. The size must not change as workers join and leave, or all keys
# would move; it changes only when worker 513 joins.
_SLOTS, _MANY_SLOTS = 8_191, 131_071
_FEW_WORKERS = 512


@lru_cache(maxsize=16)
def deal_slots(workers: tuple[int, ...]) -> tuple[int, ...]:
    """For each slot, the position of its worker among `workers`, which are sorted.

    As in Maglev (Eisenbud et al., NSDI 2016): each worker goes through the slots in its own order and takes turns
    with the others to claim the next free one. All workers get the same number of slots, within one. The table
    depends only on the set of workers, so all senders have the same, and most slots stay when a worker joins or
    leaves.
    """
    size = _SLOTS if len(workers) <= _FEW_WORKERS else _MANY_SLOTS
    slots = [-1] * size
    orders = [_order(worker, size) for worker in workers]
    for turn in range(size):
        place = turn % len(workers)
        slot, stride = orders[place]
        while slots[slot] >= 0:
            slot = (slot + stride) % size
        slots[slot] = place
        orders[place] = ((slot + stride) % size, stride)
    return tuple(slots)


def _order(worker: int, size: int) -> tuple[int, int]:
    """The first slot of a worker, and its step."""
    digest = blake2b(str(worker).encode(), digest_size=16, person=b"levada slots").digest()
    start, stride = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
    return start % size, 1 + stride % (size - 1)


_LOW = 0xFFFFFFFF


class Place(NamedTuple):
    """The three workers of a key, from three parts of its hash, and the hashed distances to the second and
    third."""

    hashed: int
    first: int
    second: int
    third: int
    step: float
    further: float


def place_of(hashed: int, slots: Sequence[int]) -> Place:
    size = len(slots)
    low, high = hashed & _LOW, hashed >> 32
    third = (low * 0x9E3779B1 ^ high * 0x85EBCA6B) & _LOW
    mix = (third ^ (third >> 15)) * 0xC2B2AE35 & _LOW
    step = ((mix & 0xFFFF) + 1) / 65536.0
    further = step + ((mix >> 16) + 1) / 65536.0
    return Place(hashed, slots[low * size >> 32], slots[high * size >> 32], slots[third * size >> 32], step, further)


def stride_of(hashed: int, workers: int) -> int:
    """A stride that meets every worker before it comes back. Also compiled."""
    stride = (hashed >> 33 & 0x3FFFFFFF) % workers  # bits that a signed word has too
    while gcd(stride, workers) != 1:
        stride += 1
    return stride % workers


SAMPLED = 8
SHARE_PARTS = 1024  # of a worker's load: the unit in which the share of hot keys is added up
_LEAST_REVIEW = 8  # turns between two reviews; the first come faster


def reviewed_after(turn: int) -> bool:
    return turn % _LEAST_REVIEW == 0 or turn & (turn - 1) == 0


class Hot:
    """State of a hot key: `ease` shortens its steps, `reach` and `stride` say which workers it considers, `run` how
    many records go to one worker in a row, `presses` whether it follows the loads alone."""

    __slots__ = ("ease", "left", "presses", "reach", "run", "stride", "worker")

    def __init__(self, hashed: int, worth: float, workers: int, tuning: Tuning) -> None:
        self.ease = tuning.ease / worth
        self.reach = int(tuning.reach * worth)
        self.stride = stride_of(hashed, workers)
        self.run = int(tuning.run * worth)
        self.presses = worth > tuning.sway * workers
        self.worker = self.left = 0


class Heads:
    """The most frequent keys: `weight` of the counted ones and `hot` ones since the last review, by hash.

    One record in eight is counted, picked by a sequence that no rhythm of the stream can follow, in a bounded table
    (Misra and Gries, 1982, purged at once): when too many keys are counted, at least the lesser half is removed and
    the others lose as much as those can have had. So no weight is too high, except by sampling. Weights are in
    units that grow with time, so that old records count less.
    """

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
        """Find the hot keys, and return their share of the stream. `worth`: of a weight of 1, in workers."""
        hot = self._tuning.hot
        self.hot = {
            hashed: Hot(hashed, weight * worth, self._workers, self._tuning)
            for hashed, weight in self.weight.items()
            if weight * worth > hot
        }
        # Whole parts have the same sum in any order.
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


_BOUND = 4.0  # no key is more than 2 from its home, so a higher level changes nothing
_RESCALE_FROM = 1e9
_PRETENDED = 0.02  # of a window: the even load that every sender starts with
_LEAST_TARGET, _MOST_TARGET = 0.05, 4.0  # times the even share
_QUEUE_SLACK = 16.0  # records in a queue that are normal


class Levels:
    """One sender's view of its workers, by position; weights are in units that grow with each turn.

    A level has two parts. The base rises while the worker is loaded above its target and falls while it is below:
    fast where the excess is certain, slowly where it may be chance. So the tolerance adapts, wide at first and
    narrow later. It is slower, too, the more of the stream is hot keys: they leave at a small rise, and a level
    that overshoots sends them too far. The second part is a small share of the load of this window, so that the
    next record already sees the last one.
    """

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

    def rebalance(self) -> float:
        """End a turn; returns the factor for weights kept elsewhere, mostly 1."""
        down = self._rescale() if self.grow > _RESCALE_FROM else 1.0
        self._rise()
        self._set()
        self.grow *= self.growth
        self.left = self.turn
        self.turns += 1
        return down

    def change(self, before: Sequence[int | None]) -> float:
        """Change the workers: for each its former position, or None if it is new. Returns as `rebalance`."""
        down = self._rescale()
        even = self._total() / len(self.load)
        self._pace(len(before))
        self.load = [even if place is None else self.load[place] for place in before]
        self.base = [0.0 if place is None else self.base[place] for place in before]
        self.speed = [1.0 if place is None else self.speed[place] for place in before]
        self.target = [1.0 / len(before)] * len(before)
        self._set()
        return down

    def observe_queues(self, queues: Sequence[float]) -> None:
        """A worker with a longer queue than the others gets less: at once, and over time for good."""
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
        total = 0.0  # added in order: `sum` rounds in another way than the compiled loop
        for load in self.load:
            total += load
        return total
