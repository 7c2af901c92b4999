"""How long does a grouped stream take? The thesis's topology in virtual time.

Sources that are never dry -> splitters, each deciding alone -> one bounded queue per worker -> workers that need
1.04 ms per record. A splitter whose next record has no room waits, and everything behind it waits too: that is how
one full worker slows all others down. Workers serve in step, so that time moves by one record's cost at a time.
What is behind the workers costs nothing here, as in the thesis's own figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from levada.compiling import compiled

__all__ = ["RECORD_SECONDS", "Run", "Sender", "run_topology"]

RECORD_SECONDS = 0.00104
_QUEUE = 1_000  # records per worker that may wait
_LEAD = 2_000  # records by which a splitter may be ahead of the slowest: what waits before it is bounded too
_AHEAD = 64  # records that a splitter has decided and not yet sent

Integers = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


class Sender(Protocol):
    """Whatever decides for one splitter."""

    def choose_many(self, keys: Any, now: float) -> Integers: ...


class Run(NamedTuple):
    chosen: Integers  # worker of each record
    decided: np.ndarray[Any, np.dtype[np.float32]]  # when, in seconds
    seconds: float  # until the last record was served


def run_topology(
    keys: Integers,
    senders: Sequence[Sender],
    workers: int,
    *,
    speeds: Sequence[float] | None = None,
    queue: int = _QUEUE,
    watch: Callable[[float, Integers], None] | None = None,
    watch_every: float = 1.0,
) -> Run:
    """Record `i` is decided by sender `i % len(senders)`; `watch(now, queues)` is called every so often."""
    advance = compiled(_advance)
    count = len(senders)
    chosen = np.full(len(keys), -1, np.int64)
    decided = np.zeros(len(keys), np.float32)
    queues = np.zeros(workers, np.int64)
    credit = np.zeros(workers)
    speed = np.ones(workers) if speeds is None else np.asarray(speeds, np.float64)
    ahead = np.zeros((count, _AHEAD), np.int64)
    begin, end = np.zeros(count, np.int64), np.zeros(count, np.int64)
    sent = np.zeros(count, np.int64)
    next_key = list(range(count))
    dry = np.zeros(count, np.bool_)
    step, next_watch = 0, watch_every
    while True:
        now = step * RECORD_SECONDS
        for sender in np.flatnonzero((begin == end) & ~dry).tolist():
            taken = keys[next_key[sender] : next_key[sender] + _AHEAD * count : count]
            if not len(taken):
                dry[sender] = True
                continue
            targets = senders[sender].choose_many(taken, now)
            chosen[next_key[sender] : next_key[sender] + _AHEAD * count : count] = targets
            decided[next_key[sender] : next_key[sender] + _AHEAD * count : count] = now
            ahead[sender, : len(targets)] = targets
            begin[sender], end[sender] = 0, len(targets)
            next_key[sender] += _AHEAD * count
        if dry.all() and not queues.any():
            return Run(chosen, decided, now)
        until = int(next_watch / RECORD_SECONDS) if watch else 1 << 62
        step = advance(step, until, queue, _LEAD, queues, credit, speed, ahead, begin, end, sent, dry)
        if watch and step >= until:
            watch(step * RECORD_SECONDS, queues)
            next_watch += watch_every


def _advance(
    step: int,
    until: int,
    limit: int,
    lead: int,
    queues: Integers,
    credit: Floats,
    speeds: Floats,
    ahead: Integers,
    begin: Integers,
    end: Integers,
    sent: Integers,
    dry: np.ndarray[Any, np.dtype[np.bool_]],
) -> int:
    """Send and serve until a splitter has nothing decided left, all is served, or it is time to look."""
    splitters = len(begin)
    while True:
        hungry = False
        slowest = sent.max()
        for splitter in range(splitters):
            if not (dry[splitter] and begin[splitter] == end[splitter]):
                slowest = min(slowest, sent[splitter])
        for turn in range(splitters):
            splitter = (turn + step) % splitters  # nobody is always first
            while begin[splitter] < end[splitter] and sent[splitter] < slowest + lead:
                worker = ahead[splitter, begin[splitter]]
                if queues[worker] >= limit:
                    break
                queues[worker] += 1
                begin[splitter] += 1
                sent[splitter] += 1
            if begin[splitter] == end[splitter] and not dry[splitter]:
                hungry = True
        if hungry or step >= until:
            return step
        busy = False
        for worker in range(len(queues)):
            if queues[worker] > 0:
                busy = True
                credit[worker] += speeds[worker]
                if credit[worker] >= 1.0:
                    credit[worker] -= 1.0
                    queues[worker] -= 1
        if not busy:
            return step
        step += 1
