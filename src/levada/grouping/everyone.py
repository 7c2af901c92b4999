"""Every record to every worker (Storm's all grouping): for control messages, and for tables that all must hold."""

from __future__ import annotations

from levada.grouping.keys import Key, whole_workers

__all__ = ["AllGrouping"]


class AllGrouping:
    """The one grouping that names several workers for a record."""

    def __init__(self, workers: int) -> None:
        self.workers = whole_workers(workers)

    def choose_all(self, key: Key, now: float = 0.0) -> range:
        return range(self.workers)
