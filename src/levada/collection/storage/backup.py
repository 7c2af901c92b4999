"""Backing up a collection while it is crawled, and verifying a backup by reading it back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

import msgspec

from levada.core.clock import SystemClock
from levada.core.errors import StoreDamaged, UsageError
from levada.core.files import export_failure, replacing, scratch_folder
from levada.core.folder import DataFolder
from levada.core.protocols import Faults
from levada.store.archive import (
    BACKUP_VERSION,
    ArchiveReader,
    ArchiveWriter,
    Header,
    Manifest,
    MemberFacts,
    ShardFacts,
    write_parts,
)
from levada.store.bodies import Bodies
from levada.store.bodies.embedding import bytes_elsewhere, embed_bodies
from levada.store.bodies.opening import reading_bodies
from levada.store.faults import NoFaults
from levada.store.opening import open_reading_store
from levada.store.snapshot import STORE, CollectionSnapshot, Member, copied, facts_of
from levada.store.sqlite.connection import SCHEMA_VERSION
from levada.store.sqlite.copying import must_have_room

OnProgress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much."""


class BackupReport(msgspec.Struct, frozen=True):
    """What a backup holds.

    >>> report = news.backup("news.backup")
    >>> report.verified, report.pages == news.stats().known
    (True, True)
    """

    file: str
    bytes: int
    created: float
    levada: str  # the version that wrote it
    pages: int
    stored: int
    versions: int
    shards: tuple[ShardFacts, ...]
    members: tuple[MemberFacts, ...]
    verified: bool  # it was read back: every member, and every store in it, is whole
    bodies_in: str = ""  # where texts and bodies are left that lie outside of the database; "": all are in the file


def back_up(
    folder: DataFolder,
    target: Path | BinaryIO,
    *,
    force: bool = False,
    keys_only: bool = False,
    on_progress: OnProgress = lambda what, done, total: None,
    faults: Faults | None = None,
) -> BackupReport:
    """Write a backup to a file, which appears when it is whole and was read back, or to a stream.

    With `keys_only`, texts and bodies that lie outside of the database stay there, and the backup refers to them.
    """
    faults = faults or NoFaults()
    folder.must_exist()
    if not isinstance(target, Path):
        with scratch_folder(folder.path / "backup.part") as scratch, naming_disk("the backup"):
            return _write(folder, target, "-", scratch, keys_only, on_progress, faults)
    _check_target(folder, target, force)
    with (
        naming_disk(str(target)),
        scratch_folder(target.with_name(f"{target.name}.copying")) as scratch,
        replacing(target, lambda step: faults.reach(f"backup.{step}")) as draft,
    ):
        # Notifications hold passwords: for its owner alone.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as out:
            report = _write(folder, out, str(target), scratch, keys_only, on_progress, faults)
        size = draft.stat().st_size
        _verify(draft, target, scratch, on_progress)
        faults.reach("backup.verified")
    return msgspec.structs.replace(report, bytes=size, verified=True)


def verify_backup(path: Path, on_progress: OnProgress = lambda what, done, total: None) -> BackupReport:
    """Read a backup: raise `StoreDamaged` with the member that is not as it was written."""
    must_be_file(path)
    with naming_disk(str(path)), scratch_folder(path.with_name(f"{path.name}.copying")) as scratch:
        header, manifest = _verify(path, path, scratch, on_progress)
    return _report(str(path), path.stat().st_size, header, manifest, verified=True)


def open_backup(source: BinaryIO, place: str) -> ArchiveReader:
    """The members of a backup, of any version that this Levada can read."""
    return ArchiveReader(source, place, SCHEMA_VERSION)


def is_store(name: str) -> bool:
    return Path(name).name == STORE


def check_store(path: Path, name: str, manifest: Manifest) -> None:
    """Raise unless this copy of a store is sound and holds what the manifest says."""
    wanted = next((each for each in manifest.shards if each.file == name), None)
    if wanted is None:
        raise StoreDamaged(f"the backup does not say what is in {name}: use another backup")
    if facts_of(path, name, wanted.place) != wanted:
        raise StoreDamaged(f"{name} does not hold what it did when the backup was made: use another backup")


def _write(
    folder: DataFolder,
    out: BinaryIO,
    where: str,
    scratch: Path,
    keys_only: bool,
    on_progress: OnProgress,
    faults: Faults,
) -> BackupReport:
    shards: list[ShardFacts] = []
    elsewhere = reading_bodies(folder)
    left = elsewhere.name if elsewhere is not None and keys_only else ""
    bodies = None if keys_only else elsewhere
    with ExitStack() as opened:
        more = 0
        if bodies is not None:
            opened.enter_context(closing(bodies))
            more = bytes_elsewhere(opened.enter_context(closing(open_reading_store(folder))))
        snapshot = opened.enter_context(CollectionSnapshot(folder, keys_only=keys_only))
        must_have_room(scratch, snapshot.largest + more, "the backup", "make room, or name a file on another disk")
        faults.reach("backup.snapshot")
        version: str = import_module("levada").__version__  # the root names this module too
        header = Header(BACKUP_VERSION, version, SystemClock().now(), SCHEMA_VERSION, snapshot.bytes + more)
        archive = ArchiveWriter(out, header)
        for member in snapshot.members:
            shards += _add(archive, member, scratch, bodies, more, on_progress)
            faults.reach("backup.member")
    manifest = archive.finish(tuple(shards))
    out.flush()
    faults.reach("backup.manifest")
    return msgspec.structs.replace(_report(where, 0, header, manifest, verified=False), bodies_in=left)


def _add(
    archive: ArchiveWriter,
    member: Member,
    scratch: Path,
    bodies: Bodies | None,
    elsewhere: int,
    on_progress: OnProgress,
) -> list[ShardFacts]:
    """Copy a member, check the copy, and pack it."""
    facts = list(copied([member], scratch, lambda name, done, total: on_progress(f"copying {name}", done, total)))
    copy = scratch / member.name
    if bodies is not None and is_store(member.name):
        embed_bodies(copy, bodies, lambda done: on_progress("reading bodies", min(done, elsewhere), elsewhere))
    size = copy.stat().st_size
    with copy.open("rb") as content:
        archive.add(
            member.name, content, size, member.mode, lambda read: on_progress(f"packing {member.name}", read, size)
        )
    copy.unlink()
    return facts


def _verify(path: Path, shown: Path, scratch: Path, on_progress: OnProgress) -> tuple[Header, Manifest]:
    """Every member by its digest, and every store by opening it, one at a time."""
    total = path.stat().st_size
    stores: list[ShardFacts] = []
    with path.open("rb") as file:
        reader = open_backup(file, str(shown))

        def take(member: MemberFacts, parts: Iterator[bytes], mode: int) -> None:
            on_progress("reading back", file.tell(), total)
            if not is_store(member.name):
                for _ in parts:
                    pass
                return
            copy = scratch / f"{len(stores)}.db"
            write_parts(copy, parts, 0o600)
            try:
                stores.append(facts_of(copy, member.name, ""))
            except StoreDamaged:
                trouble = f"{shown} is damaged: {member.name} is not as it was written"
                raise StoreDamaged(f"{trouble}: use another backup") from None
            copy.unlink()

        manifest = reader.members(take)
    if stores != [msgspec.structs.replace(each, place="") for each in manifest.shards]:
        raise StoreDamaged(f"{shown} does not hold what its manifest says: use another backup")
    return reader.header, manifest


def _report(file: str, size: int, header: Header, manifest: Manifest, *, verified: bool) -> BackupReport:
    shards = manifest.shards
    return BackupReport(
        file,
        size,
        header.created,
        header.levada,
        sum(shard.pages for shard in shards),
        sum(shard.stored for shard in shards),
        sum(shard.versions for shard in shards),
        shards,
        manifest.members,
        verified,
    )


def _check_target(folder: DataFolder, target: Path, force: bool) -> None:
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name a file in it")
    if target.exists() and not force:
        raise UsageError(f"{target} is there already: name another file, or add --force to replace it")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {target.absolute().parent}: make it first")
    if target.absolute().parent.resolve() == folder.path.resolve():
        raise UsageError(f"{target} would lie in the collection that it is to save: name a file elsewhere")


def must_be_file(path: Path) -> None:
    if not path.exists():
        raise UsageError(f"there is no file {path}: name one that 'levada backup' wrote")
    if not path.is_file():
        raise UsageError(f"{path} is not a file: name one that 'levada backup' wrote")


@contextmanager
def naming_disk(where: str) -> Iterator[None]:
    """Failures of the disk in one sentence."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise export_failure(error, where) from error
