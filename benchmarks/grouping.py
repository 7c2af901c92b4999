"""How many decisions per second does ours make, beside a plain hash and beside the thesis's method in Python?

One core, one stream of integer keys (Zipf, so that there are hot keys and a long tail) to ten workers. `vs_hash` is
ours in batch over `hash % workers` in numba on the same array; `vs_python_dynamic` over dynamic key grouping record
by record in plain Python; `from_strings` the same with the keys as Python strings, their conversion included. CPU
time of this process, the best of the repeats, each measured in turn so that all meet the same machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from table import show

from levada.grouping import DynamicKeyGrouping, LevelledGrouping

WORKERS = 10
SECRET = b"benchmark"
PYTHON_SHARE = 40  # plain Python gets so much less to do


@numba.njit
def plain_hash(keys: Any, workers: int, chosen: Any) -> None:
    for place in range(len(keys)):
        word = keys[place]
        word ^= word >> np.uint64(33)
        word *= np.uint64(0xFF51AFD7ED558CCD)
        word ^= word >> np.uint64(33)
        word *= np.uint64(0xC4CEB9FE1A85EC53)
        word ^= word >> np.uint64(33)
        chosen[place] = word % np.uint64(workers)


def stream(records: int, seed: int) -> Any:
    chance = np.random.default_rng(seed)
    return np.minimum(chance.zipf(1.2, records), 10_000_000).astype(np.int64)


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def one_by_one(keys: list[int]) -> None:
    grouping = DynamicKeyGrouping(WORKERS)
    for place, key in enumerate(keys):
        grouping.choose(key, place / 1_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    keys = stream(asked.records, 1)
    words, chosen = keys.astype(np.uint64), np.empty(len(keys), np.int64)
    few = keys[: len(keys) // PYTHON_SHARE].tolist()
    texts = [f"key-{key}" for key in keys.tolist()]
    plain_hash(words[:10], WORKERS, chosen)
    LevelledGrouping(WORKERS, SECRET).choose_many(keys[:10])
    works: dict[str, tuple[int, Callable[[], object]]] = {
        "hash % workers, numba": (len(keys), lambda: plain_hash(words, WORKERS, chosen)),
        "levelled, batch": (len(keys), lambda: LevelledGrouping(WORKERS, SECRET).choose_many(keys)),
        "levelled, batch of strings": (len(keys), lambda: LevelledGrouping(WORKERS, SECRET).choose_many(texts)),
        "dynamic, one by one": (len(few), lambda: one_by_one(few)),
    }
    best = {name: float("inf") for name in works}
    for _ in range(asked.repeats):
        for name, (records, work) in works.items():
            best[name] = min(best[name], seconds(work) / records)
    grouping = LevelledGrouping(WORKERS, SECRET)
    grouping.choose_many(keys[:10])
    rows = [
        {"method": name, "ns_per_record": 1e9 * each, "records_per_s": round(1 / each)} for name, each in best.items()
    ]
    plain, ours, from_text, python = best.values()
    ratios = {"vs_hash": plain / ours, "vs_python_dynamic": python / ours, "from_strings": python / from_text}
    show("grouping", rows, ratios, as_json=asked.json)
    if not asked.json:
        print(f"bytes per sender: {grouping.nbytes:,}")


if __name__ == "__main__":
    main()
