"""Tasks and generations of a load: its records, its progress, and the copy of the map that readers see.

A load writes a new generation that nobody reads; when all its tasks are done, one pointer is swapped. The pointer
is a `Manifest`, which names the generations that make up the map, the newest first. A whole load is one generation;
an incremental one is a layer on top of those before it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

import msgspec

from levada.bulk.entries import MASK
from levada.bulk.splitting import Span
from levada.core.errors import StoreDamaged, UsageError

MOST_LAYERS = 8  # more are refused: each layer is one more lookup
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9])?")


class LoadPlan(msgspec.Struct, frozen=True):
    """What is loaded. Two loads with the same plan fill the same map."""

    name: str
    source: str  # without its password
    table: str
    key: str
    value: str
    collect: bool = False
    watermark: str | None = None


class Manifest(msgspec.Struct, frozen=True):
    """A published map: everything that a reader needs to know."""

    plan: LoadPlan
    generation: int
    layers: tuple[int, ...]  # generations, the newest first
    key_kind: str
    value_kind: str
    keys: int  # of the newest layer
    rows: int
    digest: int
    buckets: int = 1
    newest: str | None = None  # newest value of the watermark's column: where the next incremental load begins
    published_at: float = 0.0


def checked_name(name: str) -> str:
    """A name that stays inside its prefix, in keys, files and tables."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise UsageError(f"{name[:80]!r} is not a map name: use letters, digits and . _ - inside, such as categories")
    return name


def decoded_manifest(data: bytes) -> Manifest:
    try:
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise StoreDamaged("the value under the map's name was not written by levada load") from error


class LoadState(StrEnum):
    RUNNING = "running"
    PUBLISHED = "published"
    CANCELLED = "cancelled"
    FAILED = "failed"


class LoadRecord(msgspec.Struct, frozen=True):
    """One generation of a load, as its task store keeps it."""

    plan: LoadPlan
    generation: int
    key_kind: str
    value_kind: str
    snapshot: str = ""  # that all tasks read; "" if the source cannot share one
    fingerprint: str = ""  # of the target's servers: if it changes, writes may be lost
    layers: tuple[int, ...] = ()  # of the map below this generation
    since: str | None = None
    newest: str | None = None
    started_at: float = 0.0
    ended_at: float | None = None
    estimate: int = 0  # rows
    state: LoadState = LoadState.RUNNING
    reason: str = ""


class TaskLease(msgspec.Struct, frozen=True):
    """The right to do a task. Only the holder of its newest token may complete it."""

    name: str
    generation: int
    task: int
    token: int  # how often it was leased
    span: Span


class TaskResult(msgspec.Struct, frozen=True):
    """The result of a task: the rows loaded, or the `parts` that replace it."""

    rows: int = 0
    keys: int = 0
    digest: int = 0
    null_keys: int = 0
    null_values: int = 0
    parts: tuple[Span, ...] = ()


class Totals(msgspec.Struct):
    """Sums over finished tasks."""

    tasks: int = 0
    rows: int = 0
    keys: int = 0
    digest: int = 0
    null_keys: int = 0
    null_values: int = 0


class LoadStatus(msgspec.Struct, frozen=True):
    """A snapshot of the task store."""

    record: LoadRecord
    waiting: int
    leased: int
    expired: int  # leased tasks whose holders are gone or stalled
    done: Totals
    now: float  # by the task store's clock
    owners: dict[str, tuple[int, int, int]] = {}  # tasks leased, tasks done, rows
    offers: tuple[str, ...] = ()  # snapshots that live instances keep open

    @property
    def finished(self) -> bool:
        return not self.waiting and not self.leased


def added(total: Totals, result: TaskResult) -> Totals:
    """The totals with this result. A task that was split counts only by its parts."""
    if result.parts:
        return total
    return Totals(
        total.tasks + 1,
        total.rows + result.rows,
        total.keys + result.keys,
        (total.digest + result.digest) & MASK,
        total.null_keys + result.null_keys,
        total.null_values + result.null_values,
    )


class LoadProgress(NamedTuple):
    """The progress of a load."""

    share: float  # of the tasks known so far
    rows_per_second: float  # since the load began, by all instances
    seconds_left: float | None  # of a load that runs


def progress_of(status: LoadStatus) -> LoadProgress:
    """Tasks hold about equally many rows, so tasks show how far the load is and rows how fast."""
    done = status.done.tasks
    known = done + status.waiting + status.leased
    ended = status.now if status.record.ended_at is None else status.record.ended_at
    elapsed = max(ended - status.record.started_at, 1e-6)
    share = done / known if known else 1.0
    running = status.record.state is LoadState.RUNNING
    left = elapsed * (1.0 - share) / share if done and running else None
    return LoadProgress(share, status.done.rows / elapsed, left)


class Throttle:
    """At most this many rows a second over the whole run; 0 is no limit."""

    def __init__(self, rows_per_second: float) -> None:
        self._rate = rows_per_second
        self._free_at = 0.0  # when the next rows may be read

    def rest(self, rows: int, now: float) -> float:
        """The seconds to wait after reading `rows`. Unused waiting time is not saved up."""
        if self._rate <= 0:
            return 0.0
        self._free_at = max(self._free_at, now) + rows / self._rate
        return self._free_at - now
