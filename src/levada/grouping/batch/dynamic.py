"""Dynamic key grouping over arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from levada.core.compile_cache import kernel
from levada.grouping.thresholds import CHECK, MIDDLE_SWEEP, WARM_UP, YOUNG_SWEEP, threshold_percent

if TYPE_CHECKING:
    from levada.grouping.dynamic import Generations
    from levada.grouping.keys import Hashes, Workers

_NOWHERE, _YOUNG, _MIDDLE, _OLD = 0, 1, 2, 3
_KEY = np.dtype(
    [("hash", "u8"), ("used", "i8"), ("count", "i8"), ("generation", "i8"), ("width", "i8"), ("checked", "f8")]
)
_SMALLEST = 1 << 10

Slots = np.ndarray[Any, np.dtype[np.void]]


class DynamicTable:
    """The state of one sender. Keys are in one array of slots, which doubles when half of it is used."""

    def __init__(self, workers: int, sizes: Generations, whole_percents: bool) -> None:
        self._sizes = sizes
        self._whole = whole_percents
        threshold = threshold_percent(workers)
        self._threshold = float(int(threshold)) if whole_percents else threshold
        self._sent = np.zeros(workers, np.int64)
        self._slots = np.zeros(_SMALLEST, _KEY)
        self._started: float | None = None
        self._young_due = self._middle_due = 0.0

    def choose(self, hashes: Hashes, now: float) -> Workers:
        self._sweep(now)
        chosen = np.empty(len(hashes), np.int64)
        warm = now - (self._started or 0.0) >= WARM_UP
        done = 0
        while done < len(hashes):
            done = _choose(hashes, done, now, warm, self._whole, self._threshold, self._sent, self._slots, chosen)
            if done < len(hashes):
                self._grow()
        return chosen

    def width_of(self, hashed: int) -> int:
        found = self._slots[(self._slots["hash"] == np.uint64(hashed)) & (self._slots["used"] > 0)]
        return int(found["width"][0]) if len(found) else min(2, len(self._sent))

    def _grow(self) -> None:
        known = self._slots[self._slots["used"] > 0]
        self._slots = np.zeros(2 * len(self._slots), _KEY)
        _insert(known, self._slots)

    def _sweep(self, now: float) -> None:
        if self._started is None:
            self._started = now
            self._young_due, self._middle_due = now + YOUNG_SWEEP, now + MIDDLE_SWEEP
        if now >= self._young_due:
            self._cut_young()
            self._exchange(_YOUNG, _MIDDLE, self._sizes.middle_size)
            self._young_due = now + YOUNG_SWEEP
        if now >= self._middle_due:
            self._exchange(_MIDDLE, _OLD, self._sizes.old_size)
            self._middle_due = now + MIDDLE_SWEEP

    def _cut_young(self) -> None:
        cut = self._ordered(_YOUNG, -1)[self._sizes.young_size :]
        self._slots["generation"][cut] = _NOWHERE
        self._slots["count"][cut] = 0

    def _exchange(self, lower: int, upper: int, size: int) -> None:
        rising, falling = self._ordered(lower, -1), self._ordered(upper, 1)
        room = max(0, size - len(falling))
        generation, count = self._slots["generation"], self._slots["count"]
        generation[rising[:room]] = upper
        for up, down in zip(rising[room:], falling, strict=False):
            if count[up] <= count[down]:
                break
            generation[up], generation[down] = upper, lower

    def _ordered(self, generation: int, sign: int) -> Workers:
        """The slots of a generation by count, ties by hash."""
        places = np.flatnonzero(self._slots["generation"] == generation)
        order = np.lexsort((self._slots["hash"][places], sign * self._slots["count"][places]))
        return places[order]


@kernel
def _place(hashed: np.uint64, slots: Slots) -> int:
    """The slot of this key, or the one it would get."""
    mask = len(slots) - 1
    place = np.int64(hashed >> np.uint64(7)) & mask
    while slots[place]["used"] != 0 and slots[place]["hash"] != hashed:
        place = (place + 1) & mask
    return int(place)


@kernel
def _insert(known: Slots, slots: Slots) -> None:
    for one in range(len(known)):
        slots[_place(known[one]["hash"], slots)] = known[one]


@kernel
def _load(worker: int, sent: Workers, total: int, whole: bool) -> float:
    if total == 0:
        return 0.0
    percent = 100.0 * sent[worker] / total
    return float(np.floor(percent)) if whole else percent


@kernel
def _least_loaded(home: int, width: int, sent: Workers, total: int, whole: bool) -> int:
    workers = len(sent)
    best = home
    least = _load(home, sent, total, whole)
    for step in range(1, width):
        worker = (home + step) % workers
        load = _load(worker, sent, total, whole)
        if load < least:
            best, least = worker, load
    return best


@kernel
def _roomy(home: int, width: int, sent: Workers, total: int, whole: bool, threshold: float) -> int:
    found = 0
    for step in range(width):
        if _load((home + step) % len(sent), sent, total, whole) < threshold:
            found += 1
    return found


@kernel
def _choose(
    hashes: Hashes,
    start: int,
    now: float,
    warm: bool,
    whole: bool,
    threshold: float,
    sent: Workers,
    slots: Slots,
    chosen: Workers,
) -> int:
    """Choose from `start` on, and return where it stopped: earlier than the end if the table is half full."""
    workers = len(sent)
    total = sent.sum()
    used = 0
    for place in range(len(slots)):
        used += slots[place]["used"]
    for one in range(start, len(hashes)):
        if 2 * used >= len(slots):
            return one
        hashed = hashes[one]
        slot = slots[_place(hashed, slots)]
        if slot["used"] == 0:
            used += 1
            slot["used"] = 1
            slot["hash"] = hashed
            slot["width"] = min(2, workers)
            slot["checked"] = -np.inf
        if slot["generation"] == _NOWHERE:
            slot["generation"] = _YOUNG
        slot["count"] += 1
        home: Any = np.int64(hashed % np.uint64(workers))
        width = slot["width"]
        best = _least_loaded(home, width, sent, total, whole)
        if warm and now >= slot["checked"] + CHECK:
            slot["checked"] = now
            load = _load(best, sent, total, whole)
            if load >= threshold:
                if slot["generation"] == _OLD and width < workers:
                    further = (home + width) % workers
                    if _load(further, sent, total, whole) < load:
                        slot["width"] = width + 1
                        best = further
            else:
                while width > 2 and _roomy(home, width, sent, total, whole, threshold) >= 2:
                    width -= 1
                    slot["width"] = width
                    best = _least_loaded(home, width, sent, total, whole)
                    if whole:
                        break
        sent[best] += 1
        total += 1
        chosen[one] = best
    return len(hashes)
