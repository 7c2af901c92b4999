"""Loads by name: assembled from addresses, recorded in a folder, and their progress.

Addresses may hold passwords, so only the owner can read the file of loads.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from levada.bulk.engines import open_maps, open_reader, open_source, open_task_store, redacted
from levada.bulk.instance import Instance, Loaded, NoWakeup, Pace, Patience, run_load
from levada.bulk.protocols import MapReader, TaskStore, Wakeup
from levada.bulk.splitting import SplitMethod
from levada.bulk.start import Splitting, Starter
from levada.bulk.tasks import LoadPlan, LoadState, LoadStatus, Manifest, checked_name, progress_of
from levada.bulk.verify import Content, content_of_map, content_of_table
from levada.core.clock import SystemClock
from levada.core.errors import LevadaError, NotFound, Refused, StoreDamaged, StoreError
from levada.core.files import write_durably
from levada.core.protocols import Clock

_FILE = "loads.json"


def noted_load(folder: Path, name: str) -> LoadRequest | None:
    return noted_loads(folder).get(name)


def note_load(folder: Path, request: LoadRequest) -> None:
    """Record a load, all or nothing, even if others write."""
    notes = noted_loads(folder) | {request.name: request}
    draft = folder / f".{_FILE}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_durably(draft, msgspec.json.encode(notes), os.O_TRUNC, 0o600)
        draft.replace(folder / _FILE)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from error


def noted_loads(folder: Path) -> dict[str, LoadRequest]:
    try:
        data = (folder / _FILE).read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"{folder / _FILE} cannot be read: {error.strerror or error}") from error
    try:
        return msgspec.json.decode(data, type=dict[str, LoadRequest])
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"{folder / _FILE} is damaged: remove it, and name --to and --from again") from error


log = logging.getLogger(__name__)
_POLL_SECONDS = 0.5
_ROW_BYTES = 512  # memory for a row, while its task and the previous one are held


class LoadRequest(msgspec.Struct, frozen=True):
    """A load as requested. `levada-maps/loads.json` keeps it for `status`, `resume`, `verify` and `get`."""

    source: str
    table: str
    key: str
    value: str
    name: str
    target: str
    collect: bool = False
    book: str = ""  # "": beside the map
    watermark: str | None = None
    split: SplitMethod = SplitMethod.AUTO
    task_rows: int = 50_000
    memory: int = 64_000_000
    rows_per_second: float = 0.0
    lease: float = 30.0
    keep_old: float = 5.0
    connections: int = 0  # instances that may read the source at the same time; 0: any number
    fresh: float = 0.0  # a map published less than this many seconds ago is not loaded again
    replace: bool = False
    wake: str = ""  # a RabbitMQ that wakes waiting instances; "": they only poll

    @property
    def plan(self) -> LoadPlan:
        name = checked_name(self.name)
        return LoadPlan(name, redacted(self.source), self.table, self.key, self.value, self.collect, self.watermark)

    @property
    def most_rows(self) -> int:
        return max(1_000, self.memory // _ROW_BYTES)


class LoadVerdict(NamedTuple):
    """The contents that a verification compared."""

    loaded: Content  # when it was read
    newest: Content  # what the map holds of it
    stored: Content  # what the map holds, with all its layers
    source: Content | None  # what the table holds now; None if it was not read

    @property
    def whole(self) -> bool:
        return self.newest == self.loaded

    @property
    def current(self) -> bool:
        return self.source is None or self.source == self.stored


def load(
    request: LoadRequest,
    watch: Callable[[LoadStatus], None],
    patience: Patience | None = None,
    *,
    say: Callable[[str], object] = log.warning,
) -> Loaded:
    """Take part in a load until it is published. `say` receives problems that cost time and do not end it."""
    plan, wait = request.plan, _sleep
    owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
    recent = _recent(request) if request.fresh else None
    if recent is not None:
        return Loaded(recent, began=False, restarts=0)
    wakeup: Wakeup = NoWakeup(wait)
    if request.wake:
        from levada.bulk.wakeup import RabbitmqWakeup

        wakeup = RabbitmqWakeup(request.wake, request.name, say)
    with closing(wakeup), ExitStack() as newest:
        _wait_for_room(request, wakeup)

        def opened() -> tuple[Starter, Instance, TaskStore]:
            newest.close()
            source = newest.enter_context(closing(open_source(request.source, plan)))
            maps = newest.enter_context(closing(open_maps(request.target)))
            task_store = newest.enter_context(closing(open_task_store(request.book or request.target)))
            splitting = Splitting(request.split, request.task_rows)
            starter = Starter(plan, source, task_store, maps, maps, splitting=splitting, replace=request.replace)
            pace = Pace(lease=request.lease, most_rows=request.most_rows, rows_per_second=request.rows_per_second)
            instance = Instance(source, task_store, maps, SystemClock(), owner, pace=pace, wait=wait, wakeup=wakeup)
            return starter, instance, task_store

        loaded = run_load(opened, watch, wait, patience or Patience())
        if loaded.published:
            newest.close()
            with suppress(KeyboardInterrupt):  # the map is published: the next load removes old generations
                _remove_old(request, wait)
        return loaded


def load_status(request: LoadRequest) -> tuple[LoadStatus | None, Manifest | None]:
    """The status in the task store, and the published manifest."""
    with (
        closing(open_task_store(request.book or request.target)) as task_store,
        closing(open_reader(request.target)) as reader,
    ):
        name = checked_name(request.name)
        return task_store.status(name), reader.manifest(name)


def cancel_load(request: LoadRequest) -> int:
    """Cancel a load: its entries are removed, the published map stays. Returns its generation."""
    name = checked_name(request.name)
    with closing(open_task_store(request.book or request.target)) as task_store:
        status = task_store.status(name)
        if status is None or status.record.state is LoadState.PUBLISHED:
            raise NotFound(f"no load of {name} is running")
        generation = status.record.generation
        if not task_store.finish(name, generation, LoadState.CANCELLED, "by levada load cancel"):
            raise Refused(f"load {name} has just begun another generation: check it with levada load status")
        with closing(open_maps(request.target)) as maps:
            maps.remove(name, generation)
    return generation


def verify_load(request: LoadRequest) -> LoadVerdict:
    """Compare map and table. `source` is None if the request names none."""
    name = checked_name(request.name)
    with closing(open_reader(request.target)) as reader:
        manifest = reader.manifest(name)
        if manifest is None:
            raise NotFound(f"no map {name} is published in {redacted(request.target)}")
        newest = content_of_map(reader, replace(manifest, layers=manifest.layers[:1]))
        stored = content_of_map(reader, manifest) if len(manifest.layers) > 1 else newest
    source = None
    if request.source:
        with closing(open_source(request.source, manifest.plan)) as table:
            source = content_of_table(
                table, collect=manifest.plan.collect, task_rows=request.task_rows, most_rows=request.most_rows
            )
    return LoadVerdict(Content(manifest.keys, manifest.rows, manifest.digest), newest, stored, source)


def _recent(request: LoadRequest) -> LoadStatus | None:
    """The status of the same load if others on this machine have just finished it."""
    with closing(open_task_store(request.book or request.target)) as task_store:
        status = task_store.status(request.name)
    if status is None or status.record.plan != request.plan or status.record.ended_at is None:
        return None
    age = status.now - status.record.ended_at
    return status if status.record.state is LoadState.PUBLISHED and age < request.fresh else None


def _wait_for_room(request: LoadRequest, wakeup: Wakeup) -> None:
    """Wait until fewer instances read the source than allowed. Instances that just begin are not counted."""
    if not request.connections:
        return
    with closing(open_task_store(request.book or request.target)) as task_store:
        while (status := task_store.status(request.name)) is not None and status.record.state is LoadState.RUNNING:
            readers = sum(held > 0 for held, _, _ in status.owners.values())
            if status.leased - status.expired <= 0 or readers < request.connections:
                return
            wakeup.wait(_POLL_SECONDS)


def _remove_old(request: LoadRequest, wait: Callable[[float], object]) -> None:
    """Remove old generations after a while: readers may still use the one published before."""
    with closing(open_reader(request.target)) as reader:
        if not _old_generations(reader, request.name):
            return
    wait(request.keep_old)
    with closing(open_maps(request.target)) as maps:
        for generation in _old_generations(maps, request.name):
            maps.remove(request.name, generation)


def _old_generations(reader: MapReader, name: str) -> list[int]:
    manifest = reader.manifest(name)
    if manifest is None:
        return []
    kept = manifest.layers
    return [each for each in reader.generations(name) if each < manifest.generation and each not in kept]


def _sleep(seconds: float) -> None:
    if seconds > 0:
        time.sleep(seconds)


_FRESH = 0.5  # seconds


class LoadInstance(msgspec.Struct, frozen=True):
    name: str
    leased: int  # tasks that it holds
    done: int
    rows: int


class LoadTasks(msgspec.Struct, frozen=True):
    done: int = 0
    leased: int = 0
    expired: int = 0  # their instances are gone or stalled: any instance may take them
    waiting: int = 0


class PublishedMap(msgspec.Struct, frozen=True):
    generation: int
    layers: int
    keys: int  # of the newest layer
    at: float


class KnownLoad(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: str  # running, published, cancelled, failed, or unknown
    trouble: str = ""
    source: str
    table: str
    target: str
    generation: int | None = None
    rows: int = 0
    rows_per_second: float = 0.0
    share: float | None = None  # of its tasks that are done
    seconds_left: float | None = None
    started_at: float | None = None
    tasks: LoadTasks = LoadTasks()
    instances: tuple[LoadInstance, ...] = ()
    published: PublishedMap | None = None


class LoadWatch:
    """The known loads of these folders. Threads may share it: while one waits for a slow server, the others get the
    last answer."""

    def __init__(self, folders: Sequence[Path], clock: Clock) -> None:
        self.folders = tuple(folders)
        self._clock = clock
        self._asking = Lock()
        self._latest: list[KnownLoad] = []
        self._until = 0.0

    def poll(self) -> list[KnownLoad]:
        if self._clock.monotonic() >= self._until and self._asking.acquire(blocking=False):
            try:
                self._latest = known_loads(self.folders)
                self._until = self._clock.monotonic() + _FRESH
            finally:
                self._asking.release()
        return self._latest


def known_loads(folders: Sequence[Path]) -> list[KnownLoad]:
    """The loads recorded in these folders, by name; one that cannot be queried says why."""
    found: list[KnownLoad] = []
    for folder in dict.fromkeys(folder.absolute() for folder in folders):
        try:
            found += [_known(_placed(request, folder)) for request in noted_loads(folder).values()]
        except LevadaError as error:
            found.append(KnownLoad(name="?", state="unknown", trouble=str(error), source="", table="", target=""))
    return sorted(found, key=lambda each: each.name)


def _placed(request: LoadRequest, folder: Path) -> LoadRequest:
    """A relative target is relative to the folder of the record."""
    if "://" in request.target or Path(request.target).is_absolute():
        return request
    return replace(request, target=str(folder.parent / request.target))


def _known(request: LoadRequest) -> KnownLoad:
    source, target = redacted(request.source), redacted(request.target)
    known = KnownLoad(name=request.name, state="unknown", source=source, table=request.table, target=target)
    try:
        status, manifest = load_status(request)
    except LevadaError as error:
        return replace(known, trouble=str(error))
    if manifest is not None:
        there = PublishedMap(manifest.generation, len(manifest.layers), manifest.keys, manifest.published_at)
        known = replace(known, state="published", published=there)
    if status is None:
        return known
    record, progress = status.record, progress_of(status)
    at_work = status.leased - status.expired
    return replace(
        known,
        state=record.state.value,
        trouble=record.reason,
        generation=record.generation,
        rows=status.done.rows,
        rows_per_second=progress.rows_per_second,
        share=progress.share,
        seconds_left=progress.seconds_left,
        started_at=record.started_at,
        tasks=LoadTasks(status.done.tasks, at_work, status.expired, status.waiting),
        instances=tuple(LoadInstance(owner, *counts) for owner, counts in sorted(status.owners.items())),
    )
