"""Which loads are known in a data folder and beside it, and how far is each?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import msgspec
from msgspec.structs import replace

from levada.assemble.loading import LoadRequest, load_standing
from levada.assemble.loading_notes import noted_loads
from levada.assemble.loading_urls import redacted
from levada.bulk.generations import Manifest
from levada.bulk.progress import progress_of
from levada.bulk.tasks import Standing
from levada.errors import LevadaError
from levada.ports import Clock

__all__ = ["KnownLoad", "LoadInstance", "LoadTasks", "LoadWatch", "PublishedMap", "known_loads"]

_FRESH = 0.5  # seconds


class LoadInstance(msgspec.Struct, frozen=True):
    name: str
    leased: int  # tasks that it works on
    done: int
    rows: int


class LoadTasks(msgspec.Struct, frozen=True):
    done: int = 0
    leased: int = 0
    expired: int = 0  # their instances are gone or stalled: anybody may take them
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
    share: float | None = None  # of its tasks
    seconds_left: float | None = None
    started_at: float | None = None
    tasks: LoadTasks = LoadTasks()
    instances: tuple[LoadInstance, ...] = ()
    published: PublishedMap | None = None


class LoadWatch:
    """What is known of the loads noted in these folders. Threads may share it: while one asks a server that takes
    its time, the others are told what was known before."""

    def __init__(self, folders: Sequence[Path], clock: Clock) -> None:
        self.folders = tuple(folders)
        self._clock = clock
        self._asking = Lock()
        self._latest: list[KnownLoad] = []
        self._until = 0.0

    def look(self) -> list[KnownLoad]:
        if self._clock.monotonic() >= self._until and self._asking.acquire(blocking=False):
            try:
                self._latest = known_loads(self.folders)
                self._until = self._clock.monotonic() + _FRESH
            finally:
                self._asking.release()
        return self._latest


def known_loads(folders: Sequence[Path]) -> list[KnownLoad]:
    """Those noted in these folders, by name; one that cannot be asked says why."""
    found: list[KnownLoad] = []
    for folder in dict.fromkeys(folder.absolute() for folder in folders):
        for request in _noted(folder, found):
            try:
                found.append(_known(request, *load_standing(request)))
            except LevadaError as error:
                found.append(_unknown(request, str(error)))
    return sorted(found, key=lambda each: each.name)


def _noted(folder: Path, found: list[KnownLoad]) -> list[LoadRequest]:
    try:
        return [_placed(request, folder) for request in noted_loads(folder).values()]
    except LevadaError as error:
        found.append(KnownLoad(name="?", state="unknown", trouble=str(error), source="", table="", target=""))
        return []


def _placed(request: LoadRequest, folder: Path) -> LoadRequest:
    """A target beside whoever noted it is beside the notes."""
    if "://" in request.target or Path(request.target).is_absolute():
        return request
    return replace(request, target=str(folder.parent / request.target))


def _unknown(request: LoadRequest, trouble: str = "") -> KnownLoad:
    return KnownLoad(
        name=request.name,
        state="unknown",
        trouble=trouble,
        source=redacted(request.source),
        table=request.table,
        target=redacted(request.target),
    )


def _known(request: LoadRequest, standing: Standing | None, manifest: Manifest | None) -> KnownLoad:
    base = _unknown(request)
    if manifest is not None:
        there = PublishedMap(manifest.generation, len(manifest.layers), manifest.keys, manifest.published_at)
        base = replace(base, state="published", published=there)
    return base if standing is None else _with_standing(base, standing)


def _with_standing(base: KnownLoad, standing: Standing) -> KnownLoad:
    record, progress = standing.record, progress_of(standing)
    at_work = standing.leased - standing.expired
    owners = sorted(standing.owners.items())
    return replace(
        base,
        state=record.state.value,
        trouble=record.reason,
        generation=record.generation,
        rows=standing.done.rows,
        rows_per_second=progress.rows_per_second,
        share=progress.share,
        seconds_left=progress.seconds_left,
        started_at=record.started_at,
        tasks=LoadTasks(standing.done.tasks, at_work, standing.expired, standing.waiting),
        instances=tuple(LoadInstance(owner, held, done, rows) for owner, (held, done, rows) in owners),
    )
