"""Partial key grouping, D-Choices and W-Choices over arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from levada.core.compile_cache import compiled, kernel
from levada.grouping.thresholds import SOLVE_EVERY, SOLVE_EVERY_WARM, choices_needed, head_threshold

if TYPE_CHECKING:
    from levada.grouping.keys import Hashes, Workers


@kernel
def less_loaded(one: Workers, other: Workers, sent: Workers) -> Workers:
    """For each record the less loaded of two workers; `sent` is counted on."""
    chosen = np.empty(len(one), np.int64)
    for place in range(len(one)):
        worker = other[place] if sent[one[place]] > sent[other[place]] else one[place]
        sent[worker] += 1
        chosen[place] = worker
    return chosen


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
Integers = np.ndarray[Any, np.dtype[np.int64]]
_solve: Any = compiled(choices_needed)


class ChoicesTable:
    """`SpaceSaving` as three rows (hash, count, when it got that count) and an index by hash."""

    def __init__(self, workers: int, counters: int, solves: bool) -> None:
        self._workers = workers
        self._solves = solves
        self._choices = min(2, workers) if solves else workers
        self._threshold = head_threshold(workers)
        self._sent = np.zeros(workers, np.int64)
        self._hash = np.zeros(counters, np.uint64)
        self._count = np.zeros(counters, np.int64)
        self._since = np.zeros(counters, np.int64)
        self._index = np.full(1 << (4 * counters).bit_length(), -1, np.int64)
        self._total = 0

    def choose(self, hashes: Hashes) -> Workers:
        chosen = np.empty(len(hashes), np.int64)
        done = 0
        while done < len(hashes):
            every = SOLVE_EVERY if self._total < SOLVE_EVERY_WARM else SOLVE_EVERY_WARM
            end = min(len(hashes), done + every - self._total % every)
            rows = (self._sent, self._hash, self._count, self._since, self._index)
            _choose(hashes[done:end], self._total, self._threshold, self._choices, *rows, chosen[done:end])
            self._total += end - done
            done = end
            if self._solves and self._total % every == 0:
                self._choices = _solve(self._head(), self._workers)
        return chosen

    def _head(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        counts = np.sort(self._count)[::-1]
        return np.ascontiguousarray(counts[counts > self._threshold * self._total] / self._total)


@kernel
def _choice(hashed: np.uint64, which: int, workers: int) -> int:
    word = hashed + np.uint64(which) * _GOLDEN
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    chosen: Any = np.int64((word ^ (word >> _31)) % np.uint64(workers))
    return chosen  # type: ignore[no-any-return]


@kernel
def _reindex(hashes: Hashes, count: Integers, index: Integers) -> None:
    mask = len(index) - 1
    index[:] = -1
    for place in range(len(hashes)):
        if count[place] > 0:
            slot = np.int64(hashes[place] >> _11) & mask
            while index[slot] >= 0:
                slot = (slot + 1) & mask
            index[slot] = place


@kernel
def _choose(
    keys: Hashes,
    total: int,
    threshold: float,
    choices: int,
    sent: Integers,
    hashes: Hashes,
    count: Integers,
    since: Integers,
    index: Integers,
    chosen: Workers,
) -> None:
    workers, mask = len(sent), len(index) - 1
    stale = 0  # entries of the index whose counter was taken over
    for one in range(len(keys)):
        hashed = keys[one]
        total += 1
        slot = np.int64(hashed >> _11) & mask
        while index[slot] >= 0 and (hashes[index[slot]] != hashed or count[index[slot]] == 0):
            slot = (slot + 1) & mask
        place = index[slot]
        if place < 0:
            place = 0
            for other in range(1, len(count)):
                if count[other] < count[place] or (count[other] == count[place] and since[other] < since[place]):
                    place = other
            stale += count[place] > 0
            hashes[place] = hashed
            if stale >= len(count):
                count[place] += 1
                since[place] = total
                _reindex(hashes, count, index)
                stale = 0
                count[place] -= 1
            else:
                index[slot] = place
        count[place] += 1
        since[place] = total
        limit = choices if count[place] > threshold * total else min(2, workers)
        if limit >= workers:
            best = 0
            for worker in range(1, workers):
                if sent[worker] < sent[best]:
                    best = worker
        else:
            best = _choice(hashed, 0, workers)
            for which in range(1, limit):
                worker = _choice(hashed, which, workers)
                if sent[worker] < sent[best]:
                    best = worker
        sent[best] += 1
        chosen[one] = best
    _reindex(hashes, count, index)
