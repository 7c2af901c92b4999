"""Levelled grouping over arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from levada.core.compile_cache import compiled, kernel
from levada.grouping.levels import SHARE_PARTS, Heads, Levels, stride_of

if TYPE_CHECKING:
    from levada.grouping.keys import Hasher, Hashes, Keys, Workers

Floats = np.ndarray[Any, np.dtype[np.float64]]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_A, _B, _C = np.uint64(0x9E3779B1), np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_NONE, _SIXTEEN, _FIFTEEN, _ELEVEN = np.uint64(0), np.uint64(16), np.uint64(15), np.uint64(11)
_SAMPLED = np.uint64(29)
_LOWEST = np.uint64(0xFFFF)
_HEAVIEST = 1e12
_BLOCK = 1 << 14

# Positions of the variables in `State.now`, and of the constants in `State.fixed`.
_GROW, _SQUARES, _LEFT, _TURNS, _WORTH, _HEADS, _TICK, _SAMPLES, _SHARE = range(9)
_GAIN, _SURETY, _TOUCH, _HOT, _EASE, _RUN, _REACH, _GROWTH, _TURN, _MOST, _PRESS, _SWAY, _CALM = range(13)


class State(NamedTuple):
    """One sender, as in `Levels` and `Heads`. A head of weight 0 and a hot key of ease 0 are free slots."""

    slots: np.ndarray[Any, np.dtype[np.int16]]
    load: Floats
    base: Floats
    level: Floats
    unit: Floats
    target: Floats
    now: Floats
    fixed: Floats
    head_hash: Hashes
    head_weight: Floats
    hot_hash: Hashes
    hot_ease: Floats
    hot_worker: Workers
    hot_left: Workers
    hot_run: Workers
    hot_reach: Workers
    hot_stride: Workers
    hot_presses: np.ndarray[Any, np.dtype[np.bool_]]
    sample_hash: Hashes  # of this turn, not yet counted
    sample_weight: Floats


class LevelledArrays:
    """Takes over the state of a `LevelledGrouping`."""

    def __init__(self, workers: Sequence[int], slots: Sequence[int], levels: Levels, heads: Heads, tick: int) -> None:
        self._workers = np.array(workers, np.int64)
        self._plain = list(workers) == list(range(len(workers)))
        tuning = levels.tuning
        now = [levels.grow, levels.squares, levels.left, levels.turns, levels.worth, 0, tick, 0, levels.hot]
        fixed = [levels.gain, tuning.surety, tuning.touch, tuning.hot, tuning.ease, tuning.run, tuning.reach]
        fixed += [levels.growth, levels.turn, heads.most, tuning.press, tuning.sway, tuning.calm]
        many = 1 << (2 * heads.most).bit_length()
        few = 1 << (8 * len(workers) + 63).bit_length()
        self.state = State(
            np.array(slots, np.int16),
            np.array(levels.load),
            np.array(levels.base),
            np.array(levels.level),
            np.array(levels.unit),
            np.array(levels.target),
            np.array(now, np.float64),
            np.array(fixed, np.float64),
            np.zeros(many, np.uint64),
            np.zeros(many),
            np.zeros(few, np.uint64),
            np.zeros(few),
            np.zeros(few, np.int64),
            np.zeros(few, np.int64),
            np.zeros(few, np.int64),
            np.zeros(few, np.int64),
            np.zeros(few, np.int64),
            np.zeros(few, np.bool_),
            np.zeros(levels.turn, np.uint64),
            np.zeros(levels.turn),
        )
        for hashed, weight in heads.weight.items():
            self._remember(hashed, weight)
        for hashed, hot in heads.hot.items():
            row = (hot.ease, hot.worker, hot.left, hot.run, hot.reach, hot.presses)
            _heat(np.uint64(hashed), *row, self.state)

    def choose(self, hasher: Hasher, keys: Keys, weights: Sequence[float] | Floats | None) -> Workers:
        """Block by block, so that what one loop writes is still cached when the next one reads it."""
        given = np.ones(1) if weights is None else np.asarray(weights, np.float64)
        if weights is not None and given.shape != (len(keys),):
            raise ValueError(f"needs as many weights as keys: {len(keys)}, not {len(given)}")
        if not np.all((given >= 0.0) & (given < _HEAVIEST)):
            raise ValueError("a record's weight must be 0 or more and finite")
        chosen = np.empty(len(keys), np.int64)
        for start in range(0, len(keys), _BLOCK):
            block = slice(start, start + _BLOCK)
            hashes = hasher.many(keys[block])
            _choose(hashes, given if weights is None else given[block], weights is not None, self.state, chosen[block])
        return chosen if self._plain else self._workers[chosen]

    def aim(self, target: Sequence[float]) -> None:
        self.state.target[:] = target

    def store(self, levels: Levels, heads: Heads) -> int:
        """Write the state back, and return the tick."""
        state = self.state
        _count(state)
        levels.load, levels.base = state.load.tolist(), state.base.tolist()
        levels.grow, levels.squares = float(state.now[_GROW]), float(state.now[_SQUARES])
        levels.turns = int(state.now[_TURNS])
        used = state.head_weight > 0.0
        heads.weight = dict(zip(state.head_hash[used].tolist(), state.head_weight[used].tolist(), strict=True))
        return int(state.now[_TICK])

    def _remember(self, hashed: int, weight: float) -> None:
        state = self.state
        place = _find(np.uint64(hashed), state.head_hash, state.head_weight)
        state.head_hash[place], state.head_weight[place] = hashed, weight
        state.now[_HEADS] += 1

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.state)


_stride_of = compiled(stride_of)


@kernel
def _find(hashed: np.uint64, hashes: Hashes, used: Floats) -> int:
    """The slot of this key, or the one it would get, in a table whose free slots have 0 in `used`."""
    mask = len(hashes) - 1
    place = np.int64(hashed >> _ELEVEN) & mask
    while used[place] > 0.0 and hashes[place] != hashed:
        place = (place + 1) & mask
    return int(place)


@kernel
def _count(s: State) -> None:
    mask = len(s.head_hash) - 1
    for one in range(np.int64(s.now[_SAMPLES])):
        hashed = s.sample_hash[one]
        # Not by `_find`: a call with arrays costs more than the search.
        place = np.int64(hashed >> _ELEVEN) & mask
        while s.head_weight[place] > 0.0 and s.head_hash[place] != hashed:
            place = (place + 1) & mask
        if s.head_weight[place] == 0.0:
            s.head_hash[place] = hashed
            s.now[_HEADS] += 1
        s.head_weight[place] += s.sample_weight[one]
        if s.now[_HEADS] > s.fixed[_MOST]:
            _purge(s)
    s.now[_SAMPLES] = 0


@kernel
def _purge(s: State) -> None:
    most = s.now[_HEADS] / 2.0
    cut = np.inf
    for place in range(len(s.head_weight)):
        if 0.0 < s.head_weight[place] < cut:
            cut = s.head_weight[place]
    kept = _above(cut, s.head_weight)
    while kept > most:
        cut *= 2.0
        kept = _above(cut, s.head_weight)
    hashes, weights = np.empty(kept, np.uint64), np.empty(kept)
    taken = 0
    for place in range(len(s.head_weight)):
        if s.head_weight[place] > cut:
            hashes[taken], weights[taken] = s.head_hash[place], s.head_weight[place] - cut
            taken += 1
        s.head_weight[place] = 0.0
    for one in range(kept):
        place = _find(hashes[one], s.head_hash, s.head_weight)
        s.head_hash[place], s.head_weight[place] = hashes[one], weights[one]
    s.now[_HEADS] = kept


@kernel
def _above(cut: float, weights: Floats) -> int:
    found = 0
    for place in range(len(weights)):
        if weights[place] > cut:
            found += 1
    return found


@kernel
def _heat(
    hashed: np.uint64, ease: float, worker: int, left: int, run: int, reach: int, presses: bool, s: State
) -> None:
    place = _find(hashed, s.hot_hash, s.hot_ease)
    s.hot_hash[place] = hashed
    s.hot_ease[place] = ease
    s.hot_worker[place], s.hot_left[place] = worker, left
    s.hot_run[place], s.hot_reach[place] = run, reach
    s.hot_stride[place], s.hot_presses[place] = _stride_of(int(hashed), len(s.load)), presses


@kernel
def _review(s: State) -> None:
    for place in range(len(s.hot_ease)):
        s.hot_ease[place] = 0.0
    parts = 0
    for place in range(len(s.head_hash)):
        worth = s.head_weight[place] * s.now[_WORTH]
        if worth > s.fixed[_HOT]:
            run, reach = int(s.fixed[_RUN] * worth), int(s.fixed[_REACH] * worth)
            presses = worth > s.fixed[_SWAY] * len(s.load)
            _heat(s.head_hash[place], s.fixed[_EASE] / worth, 0, 0, run, reach, presses, s)
            parts += int(SHARE_PARTS * s.head_weight[place] * s.now[_WORTH])
    s.now[_SHARE] = parts / (SHARE_PARTS * len(s.load))


@kernel
def _end_turn(s: State) -> None:
    workers = len(s.load)
    _count(s)
    if s.now[_GROW] > 1e9:
        down = 1.0 / s.now[_GROW]
        for worker in range(workers):
            s.load[worker] *= down
        for place in range(len(s.head_weight)):
            s.head_weight[place] *= down
        s.now[_SQUARES] *= down * down
        s.now[_GROW] = 1.0
    total = 0.0
    for worker in range(workers):
        total += s.load[worker]
    records = total * total / s.now[_SQUARES]
    cold = max(0.0, 1.0 - s.now[_SHARE])
    cold *= cold
    gain = s.fixed[_GAIN] * (s.fixed[_CALM] + (1.0 - s.fixed[_CALM]) * (cold * cold))
    mean = 0.0
    for worker in range(workers):
        excess = s.load[worker] / (total * s.target[worker]) - 1.0
        sure = np.abs(excess) * np.sqrt(records * s.target[worker]) / s.fixed[_SURETY]
        s.base[worker] += gain * excess * min(1.0, sure)
        mean += s.base[worker]
    mean /= workers
    for worker in range(workers):
        s.base[worker] = min(4.0, max(-4.0, s.base[worker] - mean))
        s.unit[worker] = s.fixed[_TOUCH] / (total * s.target[worker])
        s.level[worker] = s.base[worker] + s.unit[worker] * s.load[worker]
    s.now[_WORTH] = workers / total
    s.now[_GROW] *= s.fixed[_GROWTH]
    s.now[_LEFT] = s.fixed[_TURN]
    s.now[_TURNS] += 1
    turns = np.int64(s.now[_TURNS])
    if turns % 8 == 0 or turns & (turns - 1) == 0:
        _review(s)


@kernel
def _choose(hashes: Hashes, weights: Floats, weighted: bool, s: State, chosen: Workers) -> None:
    # What changes with every record is in local variables, so that it stays in registers during a turn.
    workers = len(s.load)
    size = np.uint64(len(s.slots))
    slots, level, load, unit = s.slots, s.level, s.load, s.unit
    press = s.fixed[_PRESS]
    hot_hash, hot_ease, mask = s.hot_hash, s.hot_ease, len(s.hot_hash) - 1
    grow, squares, left = s.now[_GROW], s.now[_SQUARES], np.int64(s.now[_LEFT])
    tick, samples = np.uint64(s.now[_TICK]), np.int64(s.now[_SAMPLES])
    for one in range(len(hashes)):
        hashed = hashes[one]
        amount = grow * weights[one] if weighted else grow
        tick += _A
        if ((tick + hashed) & _LOW) >> _SAMPLED == _NONE and amount > 0.0:
            s.sample_hash[samples], s.sample_weight[samples] = hashed, 8.0 * amount
            samples += 1
        hot = np.int64(hashed >> _ELEVEN) & mask
        while hot_ease[hot] > 0.0 and hot_hash[hot] != hashed:
            hot = (hot + 1) & mask
        ease = hot_ease[hot]
        if ease > 0.0 and s.hot_left[hot] > 0:
            s.hot_left[hot] -= 1
            best = s.hot_worker[hot]
        else:
            low, high = hashed & _LOW, hashed >> _HALF
            third = (low * _A ^ high * _B) & _LOW
            mix = ((third ^ (third >> _FIFTEEN)) * _C) & _LOW
            step = np.float64(np.int64(mix & _LOWEST) + 1) / 65536.0
            further = step + np.float64(np.int64(mix >> _SIXTEEN) + 1) / 65536.0
            best = np.int64(slots[(low * size) >> _HALF])
            other = np.int64(slots[(high * size) >> _HALF])
            last = np.int64(slots[(third * size) >> _HALF])
            if ease > 0.0:
                pressing, stride = s.hot_presses[hot], s.hot_stride[hot]
                least = press * unit[best] * load[best] if pressing else level[best]
                score = (press * unit[other] * load[other] if pressing else level[other]) + ease * step
                if score < least:
                    best, least = other, score
                worker = last
                for beyond in range(min(workers, s.hot_reach[hot] + 1)):
                    height = press * unit[worker] * load[worker] if pressing else level[worker]
                    score = height + ease * (further + 0.5 * beyond)
                    if score < least:
                        best, least = worker, score
                    worker = worker + stride if worker + stride < workers else worker + stride - workers
                s.hot_worker[hot] = best
                s.hot_left[hot] = s.hot_run[hot]
            else:
                least = level[best]
                score = level[other] + step
                if score < least:
                    best, least = other, score
                if level[last] + further < least:
                    best = last
        load[best] += amount
        level[best] += unit[best] * amount
        squares += amount * amount
        chosen[one] = best
        left -= 1
        if left <= 0:
            s.now[_SQUARES], s.now[_SAMPLES] = squares, samples
            _end_turn(s)
            grow, squares, left = s.now[_GROW], s.now[_SQUARES], np.int64(s.now[_LEFT])
            samples = np.int64(0)
    s.now[_SQUARES], s.now[_LEFT], s.now[_TICK] = squares, left, np.float64(np.int64(tick & _LOW))
    s.now[_SAMPLES] = samples
