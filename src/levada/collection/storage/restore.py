"""Restoring a backup into a folder: all of it, verified, or nothing.

Everything is unpacked and checked beside the folder, and takes its place in the last step. What was there before is
moved aside, never deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

import msgspec

from levada.collection.storage.backup import OnProgress, check_store, is_store, must_be_file, naming_disk, open_backup
from levada.collection.storage.placing import fill_servers, schemas_in_use
from levada.core.errors import UsageError
from levada.core.files import scratch_folder, sync_folder
from levada.core.folder import DataFolder
from levada.core.protocols import Faults
from levada.store.archive import Manifest, MemberFacts, write_parts
from levada.store.faults import NoFaults
from levada.store.sharded.plan import read_record
from levada.store.snapshot import PLACEMENT
from levada.store.sqlite.copying import must_have_room


class RestoreReport(msgspec.Struct, frozen=True):
    """What was restored.

    >>> news.backup("news.backup").pages == levada.restore("news.backup", "copy").pages
    True
    """

    data: str
    created: float  # when the backup was made
    levada: str  # the version that made it
    format: int  # of the stores in it; an older one is upgraded when it is first opened
    pages: int
    stored: int
    versions: int
    shards: int
    servers: int  # on how many servers they lie
    aside: str  # where the collection lies that was here before
    indexed: bool = False  # everything can be searched at once; else the first search or crawl builds the index


def restore(
    source: Path | BinaryIO,
    target: Path,
    *,
    force: bool = False,
    servers: Sequence[str] = (),
    on_progress: OnProgress = lambda what, done, total: None,
    faults: Faults | None = None,
) -> RestoreReport:
    """Restore a backup, from a file or a stream, into a new folder, or with its shards on these servers."""
    faults = faults or NoFaults()
    if isinstance(source, Path):
        must_be_file(source)
        with naming_disk(str(source)), source.open("rb") as file:
            return _restored(file, str(source), target, force, servers, on_progress, faults)
    return _restored(source, "the backup", target, force, servers, on_progress, faults)


def _restored(
    source: BinaryIO,
    place: str,
    target: Path,
    force: bool,
    servers: Sequence[str],
    on_progress: OnProgress,
    faults: Faults,
) -> RestoreReport:
    there = DataFolder(target)
    must_be_free(there, force)
    reader = open_backup(source, place)
    with ExitStack() as held:
        if there.path.exists() and there.exists():
            held.enter_context(there.locked())  # nobody crawls into what is moved aside
        held.enter_context(naming_disk(str(target)))
        draft = held.enter_context(scratch_folder(target.with_name(f"{target.name}.restoring"))) / target.name
        draft.mkdir()
        must_have_room(draft, reader.header.bytes, "the collection", "make room, or name another --data")
        faults.reach("restore.begin")
        manifest = reader.members(_Unpacking(draft, reader.header.bytes, on_progress, faults).take)
        _check(draft, manifest, on_progress)
        faults.reach("restore.checked")
        if servers:
            fill_servers(DataFolder(draft), target, reader.header.created, servers, on_progress, faults)
        sync_members(draft)
        aside = put_in_place(draft, target, faults)
        if servers:
            schemas_in_use(there)
    shards = manifest.shards
    return RestoreReport(
        str(target),
        reader.header.created,
        reader.header.levada,
        min((shard.format for shard in shards), default=0),
        sum(shard.pages for shard in shards),
        sum(shard.stored for shard in shards),
        sum(shard.versions for shard in shards),
        len(shards),
        len(set(servers)),
        aside,
    )


class _Unpacking:
    def __init__(self, draft: Path, total: int, on_progress: OnProgress, faults: Faults) -> None:
        self._draft = draft
        self._total = total
        self._on_progress = on_progress
        self._faults = faults
        self._done = 0

    def take(self, member: MemberFacts, parts: Iterator[bytes], mode: int) -> None:
        path = self._draft / member.name
        path.parent.mkdir(exist_ok=True)
        write_parts(path, self._told(parts), mode | 0o600)
        self._faults.reach("restore.member")

    def _told(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        for part in parts:
            self._done += len(part)
            self._on_progress("unpacking", min(self._done, self._total), self._total)
            yield part


def _check(draft: Path, manifest: Manifest, on_progress: OnProgress) -> None:
    names = [member.name for member in manifest.members if is_store(member.name)]
    for number, name in enumerate(names, 1):
        check_store(draft / name, name, manifest)
        on_progress("checking", number, len(names))
    placement = draft / PLACEMENT
    if placement.exists():
        read_record(placement.read_bytes(), PLACEMENT)


def must_be_free(there: DataFolder, force: bool) -> None:
    there.must_be_folder()
    with suppress(FileNotFoundError):
        if any(there.path.iterdir()) and not force:
            raise UsageError(
                f"{there.path} holds something already: name a new folder, or add --force, which moves it aside"
            )


def sync_members(draft: Path) -> None:
    for folder in (*(path for path in draft.iterdir() if path.is_dir()), draft):
        sync_folder(folder)


def put_in_place(draft: Path, target: Path, faults: Faults) -> str:
    """Put the draft in the place of the folder; returns where the folder went that was there."""
    aside = ""
    faults.reach("place.before-rename")
    if target.exists() and any(target.iterdir()):
        free = next(path for number in count(1) if not (path := target.with_name(f"{target.name}.{number}")).exists())
        target.rename(free)
        aside = str(free)
        faults.reach("place.aside")
    draft.rename(target)
    sync_folder(target.absolute().parent)
    faults.reach("place.after-rename")
    return aside
