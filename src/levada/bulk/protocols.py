"""Protocols of a load (source, task store, wakeup, target and reader of maps), and its errors.

Each protocol has at most six methods; `tests/bulk/memory.py` is the reference. The errors:

    LevadaError
    ├── Away            a server cannot be reached: retried for a while, then `levada load resume`
    ├── LostGround      the snapshot, or what was written, is gone: restarted under a new generation
    ├── LeaseLost       another instance has the task, and keeps it
    └── Refused
        └── LoadEnded   cancelled, failed or replaced by others

`StoreFull` and any other `LevadaError` end the load as failed, with their text as the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from levada.bulk.splitting import Key, Span, TableFacts
from levada.bulk.tasks import LoadRecord, LoadState, LoadStatus, Manifest, TaskLease, TaskResult
from levada.core.errors import LevadaError, Refused


class Away(LevadaError):
    """A source, a task store or a target cannot be reached."""


class LeaseLost(LevadaError):
    """Another instance has this task now."""


class LostGround(LevadaError):
    """What was written, or the snapshot that was read, no longer exists: the load must begin again."""


class LoadEnded(Refused):
    """The load was cancelled, failed or replaced while we worked on it."""


RedisStrings = tuple[int, int, bytes]
"""Bucket, number of entries, and these as `$n key $n value`, ready to follow an MSET."""


class Entries(Protocol):
    """Entries of a map, as bytes."""

    def __len__(self) -> int: ...
    def pairs(self) -> Sequence[tuple[bytes, bytes]]: ...

    def strings(self, prefix: bytes, buckets: int) -> Iterator[RedisStrings]:
        """The entries for Redis, with `prefix` before each key."""


class RowBatch(Protocol):
    """All rows of a task, in memory."""

    null_values: int

    def __len__(self) -> int: ...
    def digest(self) -> int: ...
    def entries(self, collect: bool) -> Entries: ...


class TableSource(Protocol):
    """Two columns of one table of a database; read-only."""

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        """Read from one of the offered snapshots; without offers, open one of our own.

        With `since`, read only keys that have a row whose watermark is at least this. Returns the snapshot that we
        offer to others, "" if the source cannot share one, None if none of the offers is alive.
        """

    def facts(self) -> TableFacts:
        """Facts of the table. Raises a `UsageError` if the table or a column is missing, `Refused` if it may not be
        read."""

    def sample(self, span: Span, size: int) -> list[Key]:
        """About `size` of the span's keys, in the source's own order."""

    def duplicate(self) -> Key | None:
        """A key with several rows, if one is known without reading all tasks."""

    def read(self, span: Span, limit: int | None) -> RowBatch | int | None:
        """The rows of a span without NULL keys and values; None if there are more than `limit`; for `NullKeys`
        their number."""

    def close(self) -> None: ...


class TaskStore(Protocol):
    """The tasks of a load, and who has leased each. Times are by the task store's clock, so machines need not
    agree."""

    def begin(self, record: LoadRecord, spans: Sequence[Span], expected: int) -> bool:
        """Open a generation; False if the newest one is no longer `expected` (0: none)."""

    def lease(self, name: str, generation: int, owner: str, seconds: float, offer: str) -> TaskLease | None:
        """A task that waits or whose lease expired; None if there is none now, or the load does not run."""

    def renew(self, lease: TaskLease, seconds: float) -> bool:
        """False if another instance has the task now."""

    def complete(self, lease: TaskLease, result: TaskResult) -> bool:
        """Mark the task done; False, without any change, if the lease is no longer the newest."""

    def finish(self, name: str, generation: int, state: LoadState, reason: str) -> bool:
        """End a running load (or run a failed or cancelled one again); False if it is not the newest."""

    def status(self, name: str) -> LoadStatus | None: ...


class Wakeup(Protocol):
    """Wakes the waiting instances of a load. A lost message only costs time: they poll at the end of their wait."""

    def notify(self) -> None:
        """Wake the others: there may be something to do or to notice. Called from any thread; never blocks."""

    def wait(self, seconds: float) -> bool:
        """Wait at most this long; True if another instance has notified since the last time."""

    def close(self) -> None: ...


class MapTarget(Protocol):
    """A map that is written in generations. Each has a write fence: writes with an older epoch are refused."""

    @property
    def buckets(self) -> int:
        """The number of buckets that keys are placed in."""

    def fingerprint(self) -> str:
        """Changes after a restart that may have lost something."""

    def fence(self, name: str, generation: int, action: str) -> int:
        """The epoch; 0 if the fence is closed. `action`: "open" creates it, "move" raises it, "look" reads it."""

    def write(self, name: str, generation: int, epoch: int, entries: Entries) -> bool:
        """Write entries; False if the fence was not at `epoch` before all were written."""

    def publish(self, manifest: Manifest) -> bool:
        """Close the fence for ever, then swap the pointer; False if a newer one is published, or this one was
        removed."""

    def remove(self, name: str, generation: int) -> None:
        """Close the fence and delete the entries; never those of a published map."""

    def close(self) -> None: ...


class MapReader(Protocol):
    """A published map."""

    def manifest(self, name: str) -> Manifest | None: ...

    def get(self, manifest: Manifest, keys: Sequence[bytes]) -> tuple[list[bytes | None], bool]:
        """The values of these keys, and whether this manifest was still the published one afterwards."""

    def entries(self, name: str, generation: int) -> Iterator[tuple[bytes, bytes]]:
        """All entries of one layer, in any order, in bounded memory."""

    def generations(self, name: str) -> list[int]:
        """The generations that have a write fence or entries."""

    def close(self) -> None: ...
