"""Flink partitioner by a grouping, for `DataStream.partition_custom`.

The job graph carries only how to make a sender; each upstream subtask makes its own at its first record, in the
Python process that runs it.
"""

from __future__ import annotations

from typing import Any

from levada.engines.sender import GroupingSender, MakeGrouping, chosen_grouping
from levada.grouping import Key


class FlinkGrouping:
    """Partitions by a grouping.

    `secret` is the same bytes in all jobs that share state by key, unknown outside. `make` returns another method
    for a number of workers; it is sent with the job, so it must be a class or function of a module, or a
    `functools.partial` of one.
    """

    def __init__(self, secret: bytes = b"", make: MakeGrouping | None = None) -> None:
        self._made_of = (secret, make)
        self._make = chosen_grouping(secret, make)
        self._sender: GroupingSender | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy starts without the counts of the original, which belong to one sender."""
        return FlinkGrouping, self._made_of

    def __call__(self, key: Key | None, num_partitions: int) -> int:
        if self._sender is None or self._sender.places != num_partitions:
            self._sender = GroupingSender(self._make, num_partitions)
        return self._sender.place_of(key)
