"""How many workers does the hot key use, second by second, when it is hot for half of the stream?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levada.lab.grouping.cell import senders_for
from levada.lab.grouping.streams import HOT_COUNTRY, half_skew_stream
from levada.lab.grouping.topology import run_topology

__all__ = ["Growth", "follow_hot_key", "seconds_to_settle"]


class Growth(NamedTuple):
    """Workers that got records of the hot key, per second of virtual time; the key is cold from `cold_from` on."""

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
    """Seconds until the key used `grown` workers, and after it turned cold, until it used `small` for good."""
    up = next((second for second, count in enumerate(growth.workers) if count >= grown), len(growth.workers))
    after = growth.workers[growth.cold_from + 1 :]
    wide = [second for second, count in enumerate(after) if count > small]
    return up, (wide[-1] + 1 if wide else 0)
