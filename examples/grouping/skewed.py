"""The stream that the examples share out, and the table that they print."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import pstdev

__all__ = ["SECRET", "print_table", "skewed_keys"]

SECRET = b"the same at every sender"  # in earnest: sixteen random bytes that nobody else knows


def skewed_keys(records: int) -> list[str]:
    """Half of the records are one key, the rest is spread over 500."""
    chance = random.Random(2018)
    return ["hot" if chance.random() < 0.5 else f"key-{chance.randrange(500)}" for _ in range(records)]


def print_table(workers: int, shared: Mapping[str, Sequence[tuple[str, int]]]) -> None:
    """`shared`: for each method, the records as pairs of key and worker, in any order."""
    records = max(map(len, shared.values()))
    print(f"{records:,} records, half of them one key, over {workers} workers")
    loads = "load of each worker in percent"
    print(f"{'method':9} {loads:{5 * workers}} {'deviation':>9} {'cost':>6}")
    for method, pairs in shared.items():
        counts = Counter(worker for _, worker in pairs)
        shares = [100.0 * counts[worker] / records for worker in range(workers)]
        load = "".join(f"{share:5.1f}" for share in shares).ljust(len(loads))
        cost = len(set(pairs)) / len({key for key, _ in pairs})
        print(f"{method:9} {load} {pstdev(shares):9.2f} {cost:6.3f}")
