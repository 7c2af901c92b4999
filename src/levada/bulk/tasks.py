"""How far is a load, and who does what of it?"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from levada.bulk.digest import MASK
from levada.bulk.generations import LoadPlan
from levada.bulk.spans import Span

__all__ = ["LoadRecord", "LoadState", "Standing", "TaskLease", "TaskResult", "Totals", "added"]


class LoadState(StrEnum):
    RUNNING = "running"
    PUBLISHED = "published"
    CANCELLED = "cancelled"
    FAILED = "failed"


class LoadRecord(msgspec.Struct, frozen=True):
    """One generation of a load, as its task book keeps it."""

    plan: LoadPlan
    generation: int
    key_kind: str
    value_kind: str
    snapshot: str = ""  # which all tasks read; "" where a source has none to share
    fingerprint: str = ""  # of the target's servers: another one may have lost what was written
    layers: tuple[int, ...] = ()  # of the map that this generation will lie over
    since: str | None = None
    newest: str | None = None
    started_at: float = 0.0
    ended_at: float | None = None
    estimate: int = 0  # rows
    state: LoadState = LoadState.RUNNING
    reason: str = ""


class TaskLease(msgspec.Struct, frozen=True):
    """The right to do a task; only the holder of its newest token may settle it."""

    name: str
    generation: int
    task: int
    token: int  # how often it was leased
    span: Span


class TaskResult(msgspec.Struct, frozen=True):
    """What became of a task: rows taken, or `parts` that stand in its place."""

    rows: int = 0
    keys: int = 0
    digest: int = 0
    null_keys: int = 0
    null_values: int = 0
    parts: tuple[Span, ...] = ()


class Totals(msgspec.Struct):
    """Sums over tasks that are done."""

    tasks: int = 0
    rows: int = 0
    keys: int = 0
    digest: int = 0
    null_keys: int = 0
    null_values: int = 0


class Standing(msgspec.Struct, frozen=True):
    """A look into the task book."""

    record: LoadRecord
    waiting: int
    leased: int
    expired: int  # of the leased: their holders are gone or stalled
    done: Totals
    now: float  # by the book's clock
    owners: dict[str, tuple[int, int, int]] = {}  # tasks leased, tasks done, rows
    offers: tuple[str, ...] = ()  # snapshots that living holders keep open

    @property
    def finished(self) -> bool:
        return not self.waiting and not self.leased


def added(total: Totals, result: TaskResult) -> Totals:
    """A task that was split counts only by its parts."""
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
