"""Storm's groupings: shuffle, key, direct, global, all, local-or-shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from levada.grouping.keys import Hasher, Key, Keys, MurmurHash, Workers, whole_workers


class ShuffleGrouping:
    """Round robin. `first` is the first worker, so that several senders can start at different ones."""

    def __init__(self, workers: int, first: int = 0) -> None:
        self.workers = whole_workers(workers)
        self._next = first % workers

    def choose(self, key: Key, now: float = 0.0) -> int:
        chosen = self._next
        self._next = (chosen + 1) % self.workers
        return chosen

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        chosen = (self._next + np.arange(len(keys), dtype=np.int64)) % self.workers
        self._next = (self._next + len(keys)) % self.workers
        return chosen


class KeyGrouping:
    """Each key at one worker: `hash(key) % workers`."""

    def __init__(self, workers: int, hasher: Hasher | None = None) -> None:
        self.workers = whole_workers(workers)
        self._hasher = hasher or MurmurHash()

    def choose(self, key: Key, now: float = 0.0) -> int:
        return self._hasher.of(key) % self.workers

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        return (self._hasher.many(keys) % np.uint64(self.workers)).astype(np.int64)


class DirectGrouping:
    """`target` names the worker of a key. An unknown worker is an error, so that no record is lost."""

    def __init__(self, workers: int, target: Callable[[Key], int]) -> None:
        self.workers = whole_workers(workers)
        self._target = target

    def choose(self, key: Key, now: float = 0.0) -> int:
        worker = self._target(key)
        if not 0 <= worker < self.workers:
            raise ValueError(f"there is no worker {worker} among {self.workers}")
        return worker

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        each = keys.tolist() if isinstance(keys, np.ndarray) else keys
        return np.fromiter((self.choose(key, now) for key in each), np.int64, len(keys))


class AllGrouping:
    """Every record to every worker: the one grouping that names several workers."""

    def __init__(self, workers: int) -> None:
        self.workers = whole_workers(workers)

    def choose_all(self, key: Key, now: float = 0.0) -> range:
        return range(self.workers)


class LocalOrShuffleGrouping:
    """Round robin over the workers of this process, `here`; over all workers if there are none."""

    def __init__(self, workers: int, here: Iterable[int] = ()) -> None:
        whole_workers(workers)
        own = sorted(set(here))
        if own and not 0 <= own[0] <= own[-1] < workers:
            raise ValueError(f"the workers of this process, {own}, are not all among {workers}")
        self._targets = own or list(range(workers))
        self._turn = ShuffleGrouping(len(self._targets))

    def choose(self, key: Key, now: float = 0.0) -> int:
        return self._targets[self._turn.choose(key, now)]

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        return np.array(self._targets, np.int64)[self._turn.choose_many(keys, now)]


class GlobalGrouping:
    """Every record to the lowest worker. `workers`: how many, or which."""

    def __init__(self, workers: int | Iterable[int]) -> None:
        named = range(whole_workers(workers)) if isinstance(workers, int) else sorted(workers)
        whole_workers(len(named))
        self._lowest = named[0]

    def choose(self, key: Key, now: float = 0.0) -> int:
        return self._lowest

    def choose_many(self, keys: Keys, now: float = 0.0) -> Workers:
        import numpy as np

        return np.full(len(keys), self._lowest, np.int64)
