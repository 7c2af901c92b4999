"""The shard plan: which shard holds which page, where the plan is stored, and who may replace it.

While pages move, `current` says where they were and `following` where they go. A page is at its old place until it
is at its new one. New pages are added only at the new place, and only after a lookup at the old one. A shard in
`emptied` has given away everything that it had to. A move that is `returning` takes back an earlier one.

`placement.json` in the data folder holds the plan. It is replaced as a whole, under a lock of the kernel. Readers
and writers hold the plan steady while they work (a shared lock, some microseconds), and read the file again after
it was replaced. Replacing it waits until no process holds it, so every process knows that pages move before the
first one does.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from levada.core.errors import StoreDamaged, StoreError, StoreTooNew
from levada.core.files import sync_folder, write_durably
from levada.sharding.page_keys import keeps_sites_whole, page_values, site_filter
from levada.sharding.placement import Placement
from levada.sharding.queries import Filter

_FORMAT = 1


class ShardPlan(msgspec.Struct, frozen=True):
    """Where pages are, and where they go."""

    current: Placement
    following: Placement | None = None
    emptied: tuple[int, ...] = ()
    returning: bool = False

    @property
    def shards(self) -> int:
        return max(self.current.shards, self.following.shards if self.following else 0)

    @property
    def used(self) -> int:
        """The number of shards that pages are placed on. A move to servers leaves the first one empty for good."""
        return len(set((self.following or self.current).ranges.owners))

    @property
    def holders(self) -> frozenset[int]:
        """The shards that hold pages, or will. Others are empty, and known for their old change log."""
        following = self.following.ranges.owners if self.following else ()
        return frozenset((*self.current.ranges.owners, *following))

    @property
    def keeps_sites_whole(self) -> bool:
        return self.following is None and keeps_sites_whole(self.current)

    def home(self, url: str) -> int:
        """The shard that should hold this page."""
        return (self.following or self.current).place(page_values(url))

    def before(self, url: str) -> int | None:
        """The shard that may still hold the page instead; None if there is none."""
        if self.following is None:
            return None
        values = page_values(url)
        old, new = self.current.place(values), self.following.place(values)
        return None if old == new or old in self.emptied else old

    def places(self, url: str) -> tuple[int, ...]:
        """Where to look for this page, in this order: a page that moves at the same time is not missed."""
        old, new = self.before(url), self.home(url)
        return (new,) if old is None else (old, new)

    def touched(self, wanted: Filter | None) -> list[int]:
        """The shards that may hold what the filter matches."""
        shards = set(self.current.shards_for(wanted))
        if self.following is not None:
            shards |= self.following.shards_for(wanted)
        return sorted(shards)

    def shards_of_site(self, site: str) -> list[int]:
        return self.touched(site_filter([site]))


class PlanSource(Protocol):
    """Where the plan is read. While it is held steady, no process replaces it."""

    def steady(self) -> AbstractContextManager[ShardPlan]: ...

    def close(self) -> None: ...


class ShardPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """A shard's folder in the data folder (always used for its index and term counts), and its server if it has
    one."""

    folder: str
    server: str = ""
    schema: str = ""


class PlacementRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The stored plan. `home` is the server whose copy decides, where machines without this folder do work."""

    format: int
    plan: ShardPlan
    shards: tuple[ShardPlace, ...]
    home: str = ""


class PlanStore(PlanSource, Protocol):
    """Where the plan is stored. Only the process that moves pages calls `replace`."""

    def read(self) -> PlacementRecord: ...

    def replace(self, record: PlacementRecord) -> None: ...

    def frozen(self) -> AbstractContextManager[PlacementRecord]:
        """Wait until nobody holds the plan steady, and let nobody do so meanwhile: no write that touches several
        shards is under way. For moments only."""
        ...


class PlanFile:
    """The plan in `placement.json`. Only the process that moves pages calls `replace`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turn = threading.Condition(threading.RLock())
        self._lock_path = path.with_suffix(".lock")
        self._lock: int | None = None
        self._depth = 0
        self._replacing: int | None = None  # the thread that holds the plan alone
        self._seen: tuple[int, int, int] | None = None
        self._record: PlacementRecord | None = None

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
        """The current plan."""
        try:
            found = os.stat(self.path)
            mark = found.st_ino, found.st_mtime_ns, found.st_size
            if self._record is None or mark != self._seen:
                self._record = read_record(self.path.read_bytes(), str(self.path))
                self._seen = mark
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from None
        return self._record

    def replace(self, record: PlacementRecord) -> None:
        """Wait until no process holds the old plan steady; durable when it returns."""
        with self._held(fcntl.LOCK_EX):
            fresh = self.path.with_suffix(".new")
            try:
                fresh.unlink(missing_ok=True)
                # Readable only by this user: server addresses may hold passwords.
                write_durably(fresh, msgspec.json.format(msgspec.json.encode(record)), os.O_EXCL, 0o600)
                fresh.replace(self.path)
                sync_folder(self.path.parent)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}") from None

    @contextmanager
    def frozen(self) -> Iterator[PlacementRecord]:
        with self._held(fcntl.LOCK_EX):
            yield self.read()

    @contextmanager
    def _held(self, how: int) -> Iterator[None]:
        """Threads hold the plan steady together, and may enter here and leave in different threads."""
        self._enter(how)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, how: int) -> None:
        me = threading.get_ident()
        with self._turn:
            if self._depth and self._replacing == me:  # who replaces the plan may read it meanwhile
                self._depth += 1
                return
            self._turn.wait_for(lambda: not self._depth or (how == fcntl.LOCK_SH and self._replacing is None))
            if self._depth == 0 and (descriptor := self._descriptor()) is not None:
                fcntl.flock(descriptor, how)
            self._replacing = me if how == fcntl.LOCK_EX else None
            self._depth += 1

    def _leave(self) -> None:
        with self._turn:
            self._depth -= 1
            if self._depth == 0:
                self._replacing = None
                if self._lock is not None:
                    fcntl.flock(self._lock, fcntl.LOCK_UN)
                self._turn.notify_all()

    def _descriptor(self) -> int | None:
        """None where we may not write and no process ever did: there is nothing to wait for."""
        if self._lock is None:
            for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
                try:
                    self._lock = os.open(self._lock_path, flags | os.O_CLOEXEC, 0o644)
                    break
                except OSError:
                    continue
        return self._lock


class MirroredPlan:
    """The server's plan, with a copy in the data folder. Writers on every machine hold the server's plan steady.
    Readers in the data folder read the file, which is written before the first page moves."""

    def __init__(self, file: PlanFile, server: PlanStore) -> None:
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
        with self.steady():  # otherwise an outdated copy could overwrite a newer one
            return self._server.read()

    def replace(self, record: PlacementRecord) -> None:
        """The server first: after a crash before the file is written, the next reader corrects the file."""
        self._server.replace(record)
        self._file.replace(record)

    @contextmanager
    def frozen(self) -> Iterator[PlacementRecord]:
        with self._server.frozen() as record, self._file.frozen():
            yield record

    def _mirror(self, record: PlacementRecord) -> None:
        if record is self._mirrored:
            return
        if self._file.read() != record:
            self._file.replace(record)
        self._mirrored = record


def new_record(plan: ShardPlan, shards: tuple[ShardPlace, ...]) -> PlacementRecord:
    return PlacementRecord(_FORMAT, plan, shards)


def read_record(content: bytes, path: str) -> PlacementRecord:
    try:
        record = msgspec.json.decode(content, type=PlacementRecord)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StoreDamaged(f"{path} cannot be read ({error}): restore a copy of it") from None
    if record.format > _FORMAT:
        raise StoreTooNew(f"{path} was written by a newer Levada: update Levada")
    if len(record.shards) < record.plan.shards:
        raise StoreDamaged(f"{path} names {len(record.shards)} of {record.plan.shards} shards: restore a copy of it")
    return record
