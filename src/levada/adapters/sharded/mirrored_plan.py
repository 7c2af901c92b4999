"""Who holds what, where a server keeps the truth? The server's plan; the file of the data folder follows it.

Whoever writes holds the server's plan steady, on whatever machine. Whoever only reads in the data folder asks the
file, which is written anew before the first page moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from levada.adapters.sharded.plan import ShardPlan
from levada.adapters.sharded.plan_file import PlacementRecord, PlanFile, PlanKeeper

__all__ = ["MirroredPlan"]


class MirroredPlan:
    def __init__(self, file: PlanFile, server: PlanKeeper) -> None:
        self._file = file
        self._server = server
        self._mirrored: PlacementRecord | None = None

    def close(self) -> None:
        self._server.close()
        self._file.close()

    @contextmanager
    def steady(self) -> Iterator[ShardPlan]:
        with self._server.steady() as plan:
            self._mirror(self._server.read())
            yield plan

    def read(self) -> PlacementRecord:
        with self.steady():  # or a copy that is out of date might be written over a newer one
            return self._server.read()

    def replace(self, record: PlacementRecord) -> None:
        """The server first: a crash before the file is written is made good by whoever looks next."""
        self._server.replace(record)
        self._file.replace(record)

    def _mirror(self, record: PlacementRecord) -> None:
        if record is self._mirrored:
            return
        if self._file.read() != record:
            self._file.replace(record)
        self._mirrored = record
