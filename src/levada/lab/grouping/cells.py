"""Grouping methods on streams, through the topology of the thesis.

Figures of one run, the hot key over time, and many runs on all cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from levada.core.compile_cache import compiled
from levada.core.errors import UsageError
from levada.grouping.keys import Hasher, Key, KeyedHash, MurmurHash
from levada.grouping.methods import Grouping, grouping_named
from levada.lab.grouping.streams import (
    HOT_COUNTRY,
    Integers,
    KeyStream,
    country_stream,
    half_skew_stream,
    real_stream,
)
from levada.lab.parallel import Progress, on_all_cores

_DENSE = 1 << 28  # bytes of a table with one byte per pair of key and worker


class GroupingFigures(msgspec.Struct, frozen=True):
    """Figures of one method on one stream."""

    deviation_percent: float  # standard deviation over workers of each worker's share of records
    distribution_cost: float  # workers per distinct key
    max_over_mean: float  # load of the fullest worker
    latency_ms: float  # until the last record was served
    throughput: float  # records per second


def figures_of(keys: Integers, chosen: Integers, workers: int, seconds: float) -> GroupingFigures:
    shares = np.bincount(chosen, minlength=workers) / len(keys)
    return GroupingFigures(
        deviation_percent=float(100.0 * shares.std()),
        distribution_cost=_pairs(keys, chosen, workers) / len(np.unique(keys)),
        max_over_mean=float(shares.max() * workers),
        latency_ms=1000.0 * seconds,
        throughput=len(keys) / seconds,
    )


def _pairs(keys: Integers, chosen: Integers, workers: int) -> int:
    codes = keys * workers + chosen
    size = (int(keys.max()) + 1) * workers
    if size > _DENSE:
        return len(np.unique(codes))
    seen = np.zeros(size, np.bool_)
    seen[codes] = True
    return int(np.count_nonzero(seen))


RECORD_SECONDS = 0.00104
_QUEUE = 1_000  # records per worker that may wait
_LEAD = 2_000  # records by which a splitter may be ahead of the slowest: its input is bounded too
_AHEAD = 64  # records that a splitter has decided but not sent

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Run(NamedTuple):
    """The decisions of a run, and its length."""

    chosen: Integers  # worker of each record
    decided: np.ndarray[Any, np.dtype[np.float32]]  # when, in seconds
    seconds: float  # until the last record was served


def run_topology(
    keys: Integers,
    senders: Sequence[Grouping],
    workers: int,
    *,
    speeds: Sequence[float] | None = None,
    watch: Callable[[float, Integers], None] | None = None,
) -> Run:
    """Run the stream through the topology of the thesis, in virtual time.

    Sources that never run dry -> splitters, each deciding alone -> one bounded queue per worker -> workers that
    need 1.04 ms per record. A splitter whose next record has no room waits, and everything behind it too: so one
    full worker slows all others down. Workers serve in step, so that time moves by one record's cost at a time.
    What follows the workers costs nothing here, as in the thesis's own figures.

    Sender `i % len(senders)` decides record `i`; `watch(now, queues)` is called every second.
    """
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
    step, next_watch = 0, 1.0
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
        step = advance(step, until, queues, credit, speed, ahead, begin, end, sent, dry)
        if watch and step >= until:
            watch(step * RECORD_SECONDS, queues)
            next_watch += 1.0


def _advance(
    step: int,
    until: int,
    queues: Integers,
    credit: Floats,
    speeds: Floats,
    ahead: Integers,
    begin: Integers,
    end: Integers,
    sent: Integers,
    dry: np.ndarray[Any, np.dtype[np.bool_]],
) -> int:
    """Send and serve until a splitter has no decided record left, all is served, or `until` is reached."""
    splitters = len(begin)
    while True:
        hungry = False
        slowest = sent.max()
        for splitter in range(splitters):
            if not (dry[splitter] and begin[splitter] == end[splitter]):
                slowest = min(slowest, sent[splitter])
        for turn in range(splitters):
            splitter = (turn + step) % splitters  # no splitter is always first
            while begin[splitter] < end[splitter] and sent[splitter] < slowest + _LEAD:
                worker = ahead[splitter, begin[splitter]]
                if queues[worker] >= _QUEUE:
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


SPLITTERS = 10
_MOST_WORKERS = 10_000


class _NameHashes:
    """Hashes that were computed once per name; a key is an index into the stream's names."""

    def __init__(self, hasher: Hasher, names: Sequence[bytes]) -> None:
        self._hashes = np.fromiter((hasher.of(name) for name in names), np.uint64, len(names))

    def of(self, key: Key) -> int:
        return int(self._hashes[int(key)])

    def many(self, keys: Any) -> Any:
        return self._hashes[keys]


class StreamHashes:
    """The hashes of a stream's names; the secret of the keyed one comes from the seed."""

    def __init__(self, names: Sequence[bytes], seed: int) -> None:
        self.first: Hasher = _NameHashes(MurmurHash(13), names)
        self.second: Hasher = _NameHashes(MurmurHash(17), names)
        self.keyed: Hasher = _NameHashes(KeyedHash(b"levada lab %d" % seed), names)


def senders_for(method: str, workers: int, names: Sequence[bytes], seed: int) -> list[Grouping]:
    if not 1 <= workers <= _MOST_WORKERS:
        raise UsageError(f"workers must be between 1 and {_MOST_WORKERS}, not {workers}")
    hashes = StreamHashes(names, seed)
    return [grouping_named(method, workers, hashes, sender) for sender in range(SPLITTERS)]


def run_cell(
    method: str,
    stream: KeyStream,
    workers: int,
    seed: int,
    watch: Callable[[float, Integers, Sequence[Grouping]], None] | None = None,
) -> GroupingFigures:
    """The figures of a method on a stream, with ten splitters that decide alone."""
    senders = senders_for(method, workers, stream.names, seed)
    own = None if watch is None else lambda now, queues: watch(now, queues, senders)
    run = run_topology(stream.keys, senders, workers, watch=own)
    return figures_of(stream.keys, run.chosen, workers, run.seconds)


class Growth(NamedTuple):
    """Workers that got records of the hot key in each second; from `cold_from` on the key is cold."""

    method: str
    workers: list[int]
    cold_from: int


def follow_hot_key(method: str, records: int, seed: int, workers: int = 10) -> Growth:
    stream = half_skew_stream(80.0, records, seed)
    senders = senders_for(method, workers, stream.names, seed)
    run = run_topology(stream.keys, senders, workers)
    seconds = run.decided.astype(np.int64)
    hot = stream.keys == stream.names.index(HOT_COUNTRY.encode())
    seen = np.zeros((int(seconds.max()) + 1, workers), np.bool_)
    seen[seconds[hot], run.chosen[hot]] = True
    return Growth(method, seen.sum(axis=1).tolist(), int(seconds[: records // 2].max()))


def seconds_to_settle(growth: Growth, grown: int, small: int) -> tuple[int, int]:
    """Seconds until the key used `grown` workers, and, after it turned cold, until it used `small` for good."""
    up = next((second for second, count in enumerate(growth.workers) if count >= grown), len(growth.workers))
    after = growth.workers[growth.cold_from + 1 :]
    wide = [second for second, count in enumerate(after) if count > small]
    return up, (wide[-1] + 1 if wide else 0)


HALF_SKEW = "half-skew"


class GroupingJob(msgspec.Struct, frozen=True):
    """`stream`: the skew of a country set in percent, `half-skew`, or the name of a real stream."""

    method: str
    stream: str
    workers: int
    seed: int
    records: int


class GroupingRow(msgspec.Struct, frozen=True):
    """A job and its figures."""

    job: GroupingJob
    figures: GroupingFigures


def run_jobs(
    jobs: Sequence[GroupingJob], progress: Progress | None = None, processes: int | None = None
) -> list[GroupingRow]:
    """The rows, in the order of the jobs."""
    return on_all_cores(_run, jobs, _name, progress, processes)


def _name(job: GroupingJob) -> str:
    return f"{job.method}, {job.stream}, {job.workers} workers"


def _run(job: GroupingJob) -> GroupingRow:
    return GroupingRow(job, run_cell(job.method, _stream(job), job.workers, job.seed))


def _stream(job: GroupingJob) -> KeyStream:
    if job.stream == HALF_SKEW:
        return half_skew_stream(80.0, job.records, job.seed)
    if job.stream.isdecimal():
        return country_stream(float(job.stream), job.records, job.seed)
    return real_stream(job.stream, job.seed)
