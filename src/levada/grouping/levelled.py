"""Levelled grouping, Levada's own method: a key has one worker, and leaves it only when the levels make it.

Each worker has a level that rises while it is loaded above the others. Each key has a home and, at hashed
distances, further workers; it goes where level plus distance is least. Keys leave a worker that is too full in the
order of their distances, the nearest first, and only the key at the margin is shared. With levels as prices this is
a transport problem, whose solution shares at most one key per worker. All senders hash alike and see similar
streams, so they move the same keys without coordination.

A hot key (worth one worker or more) has steps shrunk by its worth, and may use all workers: few keys fill what the
others leave empty, and the others stay at home. A step stays longer than the noise of the levels, so that hot keys
do not wander, and each hot key has a stride of its own, so that two of them share one worker instead of many.

The deviation tends to 0. Perfect evenness needs about keys + workers - 1 pairs of key and worker, and the method
comes close to that. It reads no clock: the window is counted in records, so a burst is judged like a trickle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from levada.grouping.keys import Hasher, Key, KeyCache, KeyedHash, whole_workers
from levada.grouping.levels import _LOW, Heads, Hot, Levels, Place, Tuning, deal_slots, place_of, reviewed_after

if TYPE_CHECKING:
    from levada.grouping.batch.levelled import LevelledArrays
    from levada.grouping.keys import Keys, Weights, Workers

_HEAVIEST = 1e12
_STRIDE = 0x9E3779B1


class LevelledGrouping:
    """`workers`: how many, or which (whole numbers). `secret`: bytes that all senders share and outsiders lack.

    `choose` and `choose_many` decide alike. From the first `choose_many` on, the state lives in arrays, and
    `choose` uses them too.
    """

    def __init__(
        self,
        workers: int | Iterable[int],
        secret: bytes = b"",
        *,
        hasher: Hasher | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self._hasher = hasher or KeyedHash(secret)
        self._tuning = tuning or Tuning()
        self._arrays: LevelledArrays | None = None
        named = range(whole_workers(workers)) if isinstance(workers, int) else set(workers)
        self._workers = sorted(named)
        count = whole_workers(len(self._workers))
        self._levels = Levels(count, self._tuning)
        self._heads = Heads(count, self._tuning)
        self._tick = 0
        self._assign_slots()

    @property
    def workers(self) -> tuple[int, ...]:
        return tuple(self._workers)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of this sender; 0 before the first `choose_many`."""
        return 0 if self._arrays is None else self._arrays.nbytes

    def choose(self, key: Key, now: float = 0.0, weight: float = 1.0) -> int:
        """The worker for a record of this weight; `now` is not used."""
        if self._arrays is not None:
            return int(self.choose_many([key], now, [weight])[0])
        if not 0.0 <= weight < _HEAVIEST:
            raise ValueError(f"a record's weight must be 0 or more and finite, not {weight}")
        place = self._places[key]
        levels = self._levels
        amount = levels.grow * weight
        self._tick = (self._tick + _STRIDE) & _LOW
        if (self._tick + place.hashed & _LOW) >> 29 == 0 and amount:
            self._heads.count(place.hashed, amount)
        hot = self._heads.hot.get(place.hashed)
        chosen = self._nearest(place) if hot is None else self._choose_hot(place, hot)
        levels.load[chosen] += amount
        levels.level[chosen] += levels.unit[chosen] * amount
        levels.squares += amount * amount
        levels.left -= 1
        if levels.left <= 0:
            self._end_turn()
        return self._workers[chosen]

    def choose_many(self, keys: Keys, now: float = 0.0, weights: Weights | None = None) -> Workers:
        if self._arrays is None:
            from levada.grouping.batch.levelled import LevelledArrays

            self._arrays = LevelledArrays(self._workers, self._slots, self._levels, self._heads, self._tick)
        return self._arrays.choose(self._hasher, keys, weights)

    def observe_queues(self, queues: Sequence[float]) -> None:
        """Take the measured queue lengths of the workers, in order, to even out queues rather than counts."""
        if len(queues) != len(self._workers) or not all(0.0 <= queue < _HEAVIEST for queue in queues):
            raise ValueError(f"needs {len(self._workers)} queue lengths of 0 or more, not {list(queues)!r}")
        self._levels.observe_queues(queues)
        if self._arrays is not None:
            self._arrays.aim(self._levels.target)

    def join(self, worker: int) -> None:
        """Add a worker: its fair share of the keys moves to it, the others stay."""
        if worker in self._workers:
            raise ValueError(f"worker {worker} is here already")
        self._change(sorted([*self._workers, worker]))

    def leave(self, worker: int) -> None:
        """Remove a worker: its keys spread over the others."""
        if worker not in self._workers:
            raise ValueError(f"there is no worker {worker}")
        self._change([other for other in self._workers if other != worker])

    def _change(self, workers: list[int]) -> None:
        """Use these workers; those that stay keep their levels, a new one starts at the average."""
        whole_workers(len(workers))
        if self._arrays is not None:
            self._tick = self._arrays.store(self._levels, self._heads)
            self._arrays = None
        before = {worker: place for place, worker in enumerate(self._workers)}
        down = self._levels.change([before.get(worker) for worker in workers])
        self._heads.rescale(down)
        self._heads.resize(len(workers))
        self._levels.hot = self._heads.review(self._levels.worth)
        self._workers = workers
        self._assign_slots()

    def _assign_slots(self) -> None:
        self._slots = deal_slots(tuple(self._workers))
        self._places: KeyCache[Place] = KeyCache(self._place)

    def _place(self, key: Key) -> Place:
        return place_of(self._hasher.of(key), self._slots)

    def _nearest(self, place: Place) -> int:
        level = self._levels.level
        best, least = place.first, level[place.first]
        score = level[place.second] + place.step
        if score < least:
            best, least = place.second, score
        return place.third if level[place.third] + place.further < least else best

    def _choose_hot(self, place: Place, hot: Hot) -> int:
        if hot.left > 0:
            hot.left -= 1
            return hot.worker
        height = self._pressed() if hot.presses else self._levels.level
        best, least = place.first, height[place.first]
        score = height[place.second] + hot.ease * place.step
        if score < least:
            best, least = place.second, score
        for beyond in range(min(len(height), hot.reach + 1)):
            worker = (place.third + beyond * hot.stride) % len(height)
            score = height[worker] + hot.ease * (place.further + 0.5 * beyond)
            if score < least:
                best, least = worker, score
        hot.worker, hot.left = best, hot.run
        return best

    def _pressed(self) -> list[float]:
        """Heights for a key worth a quarter of all workers: the loads of this window alone, much amplified. The key
        dominates the levels, and those from before it came must not lead it."""
        press, levels = self._tuning.press, self._levels
        return [press * unit * load for unit, load in zip(levels.unit, levels.load, strict=True)]

    def _end_turn(self) -> None:
        down = self._levels.rebalance()
        if down != 1.0:
            self._heads.rescale(down)
        if reviewed_after(self._levels.turns):
            self._levels.hot = self._heads.review(self._levels.worth)
