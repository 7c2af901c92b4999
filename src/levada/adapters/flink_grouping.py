"""How does Flink send each record to the worker that a grouping names?

For `DataStream.partition_custom`, which takes any callable of a key and a number of partitions. The job graph
carries only how to make a sender; each upstream subtask makes its own when its first record comes, in the Python
process that runs it.
"""

from __future__ import annotations

from typing import Any

from levada.adapters.grouping_sender import GroupingSender, MakeGrouping, chosen_grouping
from levada.grouping import Key

__all__ = ["FlinkGrouping"]


class FlinkGrouping:
    """`secret`: the same bytes in all jobs that share state by key, unknown outside.

    `make` gives another method for a number of workers; it travels with the job, so it is a class or function of a
    module, or a `functools.partial` of one.
    """

    def __init__(self, secret: bytes = b"", make: MakeGrouping | None = None) -> None:
        self._made_of = (secret, make)
        self._make = chosen_grouping(secret, make)
        self._sender: GroupingSender | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """What a sender has seen is its own: a copy begins anew."""
        return FlinkGrouping, self._made_of

    def __call__(self, key: Key | None, num_partitions: int) -> int:
        if self._sender is None or self._sender.places != num_partitions:
            self._sender = GroupingSender(self._make, num_partitions)
        return self._sender.place_of(key)
