"""Moving a collection: to another folder, to PostgreSQL servers, or from servers into files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import msgspec

from levada.collection.storage.backup import OnProgress, naming_disk
from levada.collection.storage.placing import move_to_files, move_to_servers
from levada.collection.storage.restore import must_be_free, put_in_place, sync_members
from levada.core.errors import StoreDamaged, UsageError
from levada.core.files import scratch_folder, sync_folder
from levada.core.folder import DataFolder, only_notifier
from levada.core.protocols import Faults
from levada.store.faults import NoFaults
from levada.store.moving_lock import only_mover_anywhere
from levada.store.snapshot import CollectionSnapshot, copied, facts_of
from levada.store.sqlite.copying import must_have_room

FILES = "files"


class MoveReport(msgspec.Struct, frozen=True):
    """Where a collection lies now."""

    data: str
    moved: int  # shards
    pages: int  # of the stores that were copied to another folder
    kept: str  # the folder where the old copy lies; "" if there is none
    removed: bool  # whether the old copy was deleted


def move_folder(
    folder: DataFolder,
    target: Path,
    *,
    remove: bool = False,
    on_progress: OnProgress = lambda what, done, total: None,
    faults: Faults | None = None,
) -> MoveReport:
    """Copy a collection to another folder, verify the copy, and take the old one out of use: it is renamed, or
    deleted. Shards on servers stay there."""
    faults = faults or NoFaults()
    folder.must_exist()
    there = DataFolder(target)
    must_be_free(there, force=False)
    old = folder.path.resolve()
    if old == target.resolve() or old in target.resolve().parents:
        raise UsageError(f"{target} lies in {folder.path}, which is to move: name a folder elsewhere")
    with alone(folder), naming_disk(str(target)):
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        with (
            CollectionSnapshot(folder, moving=True) as snapshot,
            scratch_folder(target.with_name(f"{target.name}.moving")) as scratch,
        ):
            must_have_room(scratch, snapshot.bytes, "the collection", "make room, or name another folder")
            draft = scratch / target.name
            draft.mkdir()
            facts = list(copied(snapshot.members, draft, lambda name, done, total: on_progress(name, done, total)))
            faults.reach("move.copied")
            for each in facts:
                if facts_of(Path(each.place), each.file, each.place, copy=False) != each:
                    raise StoreDamaged(f"{each.place} changed while it was copied: stop what writes to it")
            sync_members(draft)
            faults.reach("move.checked")
            put_in_place(draft, target, faults)
        kept = _retire(old, remove=remove)
        faults.reach("move.retired")
    return MoveReport(str(target), len(facts), sum(each.pages for each in facts), kept, remove)


def move_stores(
    folder: DataFolder,
    servers: Sequence[str],
    *,
    faults: Faults | None = None,
    on_progress: OnProgress = lambda what, done, total: None,
    remove: bool = False,
) -> MoveReport:
    """Bring the stores of all shards to these servers in turn, or, where none is named, into files of the folder."""
    faults = faults or NoFaults()
    folder.must_exist()
    if folder.engine() != "sqlite" and not folder.placement.exists():
        raise UsageError(f"the collection in {folder.path} is kept by a plug-in: move it with the means of that store")
    with alone(folder), naming_disk(str(folder.path)):
        if servers:
            moved = move_to_servers(folder, servers, remove=remove, on_progress=on_progress, faults=faults)
        else:
            moved = move_to_files(folder, remove=remove, on_progress=on_progress, faults=faults)
    return MoveReport(str(folder.path), moved, 0, "" if remove or not moved else str(folder.path), remove)


@contextmanager
def alone(folder: DataFolder) -> Iterator[None]:
    """Nobody crawls, moves pages or sends notifications: nothing is told by the old copy and the new one."""
    with folder.locked(), only_mover_anywhere(folder), only_notifier(folder):
        yield


def _retire(old: Path, *, remove: bool) -> str:
    """Take the old folder out of use in one step; then delete it, if it is to be deleted."""
    free = next(path for number in count() if not (path := _aside(old, number)).exists())
    old.rename(free)
    sync_folder(old.parent)
    if not remove:
        return str(free)
    shutil.rmtree(free)
    return ""


def _aside(old: Path, number: int) -> Path:
    return old.with_name(f"{old.name}.moved{f'.{number}' * bool(number)}")
