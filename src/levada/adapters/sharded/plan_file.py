"""Where is written who holds what? `placement.json` in the data folder, replaced whole, under a lock of the kernel.

Whoever asks or writes holds the plan steady while he does (a shared lock, some microseconds), and reads the file
again when it was replaced. Whoever replaces it waits until nobody holds it: so everybody has seen that pages move
before the first one does.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from levada.adapters.durable_file import sync_folder, write_durably
from levada.adapters.sharded.plan import PlanSource, ShardPlan
from levada.errors import StoreDamaged, StoreError, StoreTooNew

__all__ = ["PlacementRecord", "PlanFile", "PlanKeeper", "ShardPlace", "new_record", "read_record"]

_FORMAT = 1


class ShardPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """A shard's folder in the data folder (for its index and counts in any case), and its server if it has one."""

    folder: str
    server: str = ""
    schema: str = ""


class PlacementRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """`home` is the server whose copy is the truth, where machines without this folder work on the collection."""

    format: int
    plan: ShardPlan
    shards: tuple[ShardPlace, ...]
    home: str = ""


class PlanKeeper(PlanSource, Protocol):
    """`read` for everybody, `replace` for whoever moves pages."""

    def read(self) -> PlacementRecord: ...

    def replace(self, record: PlacementRecord) -> None: ...


class PlanFile:
    """`read` and `steady` for everybody, `replace` for whoever moves pages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turn = threading.RLock()
        self._lock_path = path.with_suffix(".lock")
        self._lock: int | None = None
        self._depth = 0
        self._seen: tuple[int, int, int] | None = None
        self._record: PlacementRecord | None = None

    def exists(self) -> bool:
        return self.path.exists()

    def close(self) -> None:
        with self._turn:
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    @contextmanager
    def steady(self) -> Iterator[ShardPlan]:
        with self._held(fcntl.LOCK_SH):
            yield self.read().plan

    def read(self) -> PlacementRecord:
        """As it is now."""
        try:
            found = os.stat(self.path)
            mark = found.st_ino, found.st_mtime_ns, found.st_size
            if self._record is None or mark != self._seen:
                self._record = _decoded(self.path)
                self._seen = mark
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from None
        return self._record

    def replace(self, record: PlacementRecord) -> None:
        """Once nobody holds the old one steady; durable when this returns."""
        with self._held(fcntl.LOCK_EX):
            fresh = self.path.with_suffix(".new")
            try:
                _write_privately(fresh, msgspec.json.format(msgspec.json.encode(record)))
                fresh.replace(self.path)
                sync_folder(self.path.parent)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}") from None

    @contextmanager
    def _held(self, how: int) -> Iterator[None]:
        with self._turn:
            descriptor = self._descriptor()
            if self._depth == 0 and descriptor is not None:
                fcntl.flock(descriptor, how)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and descriptor is not None:
                    fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _descriptor(self) -> int | None:
        """None where we may not write and nobody ever did: there is nothing to wait for."""
        if self._lock is None:
            for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
                try:
                    self._lock = os.open(self._lock_path, flags | os.O_CLOEXEC, 0o644)
                    break
                except OSError:
                    continue
        return self._lock


def new_record(plan: ShardPlan, shards: tuple[ShardPlace, ...]) -> PlacementRecord:
    return PlacementRecord(_FORMAT, plan, shards)


def _decoded(path: Path) -> PlacementRecord:
    return read_record(path.read_bytes(), str(path))


def read_record(content: bytes, path: str) -> PlacementRecord:
    try:
        record = msgspec.json.decode(content, type=PlacementRecord)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StoreDamaged(f"{path} is not readable ({error}): restore a copy of it") from None
    if record.format > _FORMAT:
        raise StoreTooNew(f"{path} was written by a newer Levada: update Levada")
    if len(record.shards) < record.plan.shards:
        raise StoreDamaged(
            f"{path} names {len(record.shards)} of {record.plan.shards} shards: restore a copy of it"
        )
    return record


def _write_privately(path: Path, content: bytes) -> None:
    """Durable, and for nobody else to read: addresses of servers may hold passwords."""
    path.unlink(missing_ok=True)
    write_durably(path, content, os.O_EXCL, 0o600)
