"""What does one method do with one stream?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from levada.errors import UsageError
from levada.grouping.keyed_hash import KeyedHash
from levada.grouping.keys import Hasher, Key
from levada.grouping.methods import Grouping, grouping_named
from levada.grouping.murmur import MurmurHash
from levada.lab.grouping.figures import Figures, figures_of
from levada.lab.grouping.streams import Stream
from levada.lab.grouping.topology import run_topology

__all__ = ["SPLITTERS", "StreamHashes", "run_cell", "senders_for"]

SPLITTERS = 10
_MOST_WORKERS = 10_000

Integers = np.ndarray[Any, np.dtype[np.int64]]


class _Looked:
    """Hashes that were computed once per name; keys are places in the stream's names."""

    def __init__(self, hasher: Hasher, names: Sequence[bytes]) -> None:
        self._hashes = np.fromiter((hasher.of(name) for name in names), np.uint64, len(names))

    def of(self, key: Key) -> int:
        return int(self._hashes[int(key)])

    def many(self, keys: Any) -> Any:
        return self._hashes[keys]


class StreamHashes:
    """The hashes of a stream's names; the secret of the keyed one comes from the seed."""

    def __init__(self, names: Sequence[bytes], seed: int) -> None:
        self.first: Hasher = _Looked(MurmurHash(13), names)
        self.second: Hasher = _Looked(MurmurHash(17), names)
        self.keyed: Hasher = _Looked(KeyedHash(b"levada lab %d" % seed), names)


def senders_for(method: str, workers: int, names: Sequence[bytes], seed: int) -> list[Grouping]:
    if not 1 <= workers <= _MOST_WORKERS:
        raise UsageError(f"workers must be between 1 and {_MOST_WORKERS}, not {workers}")
    hashes = StreamHashes(names, seed)
    return [grouping_named(method, workers, hashes, sender) for sender in range(SPLITTERS)]


def run_cell(
    method: str,
    stream: Stream,
    workers: int,
    seed: int,
    watch: Callable[[float, Integers, Sequence[Grouping]], None] | None = None,
) -> Figures:
    """The stream through the thesis's topology, ten splitters deciding alone."""
    senders = senders_for(method, workers, stream.names, seed)
    look = None if watch is None else lambda now, queues: watch(now, queues, senders)
    run = run_topology(stream.keys, senders, workers, watch=look)
    return figures_of(stream.keys, run.chosen, workers, run.seconds)
