"""What a load asks of the world: a table, a book of tasks, a bell, a map to write, a map to read.

At most six methods each; `levada.adapters.bulk.memory` is the reference of the book and the maps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from levada.bulk.generations import Manifest
from levada.bulk.spans import Key, Span
from levada.bulk.splitting import TableFacts
from levada.bulk.tasks import LoadRecord, LoadState, Standing, TaskLease, TaskResult

__all__ = ["Bell", "Entries", "MapReader", "MapTarget", "RowBatch", "TableSource", "TaskBook"]


class Entries(Protocol):
    """Entries of a map, as bytes."""

    key_kind: str

    def __len__(self) -> int: ...
    def pairs(self) -> Sequence[tuple[bytes, bytes]]: ...


class RowBatch(Protocol):
    """All rows of a task, in memory."""

    null_values: int

    def __len__(self) -> int: ...
    def digest(self) -> int: ...
    def entries(self, collect: bool) -> Entries: ...


class TableSource(Protocol):
    """One table of a database, two of its columns; read only."""

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        """See the same rows as whoever offered one of these snapshots; without offers, keep one of our own.

        With `since`, only of keys that have a row whose watermark is at least this.

        What we offer to others, "" if the source cannot share; None if none of the offers is alive.
        """
        ...

    def facts(self) -> TableFacts:
        """Raises a `UsageError` where there is no such table or column, `Refused` where it may not be read."""
        ...

    def sample(self, span: Span, size: int) -> list[Key]:
        """About so many of its keys, in the source's own order."""
        ...

    def duplicate(self) -> Key | None:
        """A key that has several rows, if that is known without reading all tasks."""
        ...

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        """The rows of a span without NULL keys and values; None if there are more than `limit`; of `NullKeys`,
        how many."""
        ...

    def close(self) -> None: ...


class TaskBook(Protocol):
    """Who does what? Times are by the book's own clock, so that machines need not agree on theirs."""

    def begin(self, record: LoadRecord, spans: Sequence[Span], expected: int) -> bool:
        """Open a generation; False if the book's newest is no longer `expected` (0: none)."""
        ...

    def lease(self, name: str, generation: int, owner: str, seconds: float, offer: str) -> TaskLease | None:
        """A task that waits, or whose lease has run out; None if there is none now, or the load does not run."""
        ...

    def renew(self, lease: TaskLease, seconds: float) -> bool:
        """False if the task is another's by now."""
        ...

    def settle(self, lease: TaskLease, result: TaskResult) -> bool:
        """Mark it done; False, and nothing is changed, if the lease is no longer the newest."""
        ...

    def finish(self, name: str, generation: int, state: LoadState, reason: str) -> bool:
        """End a running load (or run a failed or cancelled one again); False if it is not the newest."""
        ...

    def standing(self, name: str) -> Standing | None: ...


class Bell(Protocol):
    """Wakes the instances of a load that wait. It may fail to: whoever waits looks again at the end of the nap."""

    def ring(self) -> None:
        """There may be something to do, or to notice; from any thread, and it waits for nobody."""
        ...

    def wait(self, seconds: float) -> bool:
        """At most so long; True if another has rung since the last time."""
        ...

    def close(self) -> None: ...


class MapTarget(Protocol):
    """A map that is written under generations. Each has a gate: what is written under an older epoch is refused."""

    @property
    def buckets(self) -> int:
        """Into how many buckets keys are placed."""
        ...

    def fingerprint(self) -> str:
        """Another one after a restart that may have lost something."""
        ...

    def gate(self, name: str, generation: int, action: str) -> int:
        """The epoch; 0 if the gate is closed. `action`: "open" makes it, "move" raises it, "look" leaves it."""
        ...

    def write(self, name: str, generation: int, epoch: int, entries: Entries) -> bool:
        """False if the gate was not at `epoch` before all was written."""
        ...

    def publish(self, manifest: Manifest) -> bool:
        """Close the gate for ever, then swap the pointer; False if a newer one is, or this one was removed."""
        ...

    def remove(self, name: str, generation: int) -> None:
        """Close the gate and delete the entries; never those of a published map."""
        ...

    def close(self) -> None: ...


class MapReader(Protocol):
    """A published map."""

    def manifest(self, name: str) -> Manifest | None: ...

    def get(self, manifest: Manifest, keys: Sequence[bytes]) -> tuple[list[bytes | None], bool]:
        """The values of these keys, and whether this manifest was still the published one afterwards."""
        ...

    def entries(self, name: str, generation: int) -> Iterator[tuple[bytes, bytes]]:
        """All of one layer, in any order, in bounded memory."""
        ...

    def generations(self, name: str) -> list[int]:
        """Those that have a gate or entries."""
        ...

    def close(self) -> None: ...
