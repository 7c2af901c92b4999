"""A snapshot of a whole collection while others write to it: what a backup and a move copy.

The small files that follow the change log (notifications, counts, commands) are taken before the stores. So their
positions are never ahead of the store that they belong to: restored, they go on from there, and miss nothing. The
stores of all shards are taken at one instant at which no write that touches two of them is under way: a visit and
the links that it found for other shards are both in it, or neither is.

Left out is what is made again (`index/`, `maps/`, `live.json`), what belongs to this folder alone (locks, the name of
the collection) and older backups.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

import msgspec

from levada.core.errors import StoreDamaged, StoreError, UsageError
from levada.core.files import write_durably
from levada.core.folder import DataFolder
from levada.core.plugins import is_builtin
from levada.store.archive import MEMBER_NAME, ShardFacts
from levada.store.opening import shard_places, writing_plan
from levada.store.sql.base import check_format
from levada.store.sqlite.connection import APPLICATION_ID, OLDEST_VERSION, SCHEMA_VERSION, check, marks, translated
from levada.store.sqlite.copying import DatabaseSnapshot

if TYPE_CHECKING:
    from levada.store.sharded.plan import PlacementRecord, ShardPlace

STORE = "levada.db"
PLACEMENT = "placement.json"
_SQLITE = b"SQLite format 3\0"
_FOR_ALL = 0o644
_PRIVATE = 0o600
_LEFT_OUT = {"lock", "live.json", PLACEMENT, STORE}
_BODIES = "bodies.json"  # a copy that is whole has its bodies in its rows
_ONLY_HERE = {"collection", "demo.json"}
_LEFT_OUT_ENDINGS = (".lock", "-wal", "-shm", "-journal", ".part", ".new", ".backup")
_COUNTS = """SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM pages WHERE version > 0 AND NOT gone),
    (SELECT count(*) FROM versions), coalesce((SELECT n FROM counters WHERE name = 'seq'), 0)"""
Told = Callable[[int, int], None]
"""Told how much of a member is copied, and of how much."""


class _Source(Protocol):
    @property
    def bytes(self) -> int: ...

    def copy(self, target: Path, *, on_progress: Told) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Member:
    """A file of the collection."""

    name: str
    mode: int
    source: _Source
    place: str = ""  # of a store: where it was

    def copy(self, target: Path, on_progress: Told = lambda done, total: None) -> None:
        """Write it to a new file, as it was when the snapshot was taken."""
        self.source.copy(target, on_progress=on_progress)
        target.chmod(self.mode)


class CollectionSnapshot:
    """The members of a collection as they were at one moment. Use it as a context manager: until it ends, the logs
    of its databases keep what is written meanwhile."""

    def __init__(self, folder: DataFolder, *, moving: bool = False, keys_only: bool = False) -> None:
        """`moving` keeps what only one folder may have: the name of the collection, and its shards on servers."""
        folder.must_exist()
        if not is_builtin("levada.stores", folder.engine()):
            raise UsageError(
                f"the collection in {folder.path} is kept by the plug-in {folder.engine()!r}: copy it with the means "
                "of that store"
            )
        self.members: list[Member] = []
        self._folder = folder
        self._moving = moving
        self._keys_only = keys_only
        with ExitStack() as opened:
            self._opened = opened
            try:
                self._take_others()
                self._take_stores()
            except OSError as error:
                raise StoreError(f"cannot read {folder.path}: {error.strerror or error}") from None
            self._opened = opened.pop_all()

    def __enter__(self) -> CollectionSnapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    @property
    def bytes(self) -> int:
        """About the size of all members."""
        return sum(member.source.bytes for member in self.members)

    @property
    def largest(self) -> int:
        return max((member.source.bytes for member in self.members), default=0)

    def _take_others(self) -> None:
        folders = [self._folder.path, *(self._folder.path / each.folder for each in shard_places(self._folder))]
        left_out = _LEFT_OUT if self._moving else _LEFT_OUT | _ONLY_HERE
        if not (self._moving or self._keys_only):
            left_out |= {_BODIES}
        for folder in dict.fromkeys(path.resolve() for path in folders if path.is_dir()):
            inside = "" if folder == self._folder.path.resolve() else f"{folder.name}/"
            for path in sorted(folder.iterdir()):
                named = MEMBER_NAME.fullmatch(f"{inside}{path.name}")
                if named and path.name not in left_out and not path.name.endswith(_LEFT_OUT_ENDINGS):
                    self._take_file(path, named[0])

    def _take_file(self, path: Path, name: str) -> None:
        if path.is_symlink() or not path.is_file():
            return
        with path.open("rb") as file:
            is_database = file.read(len(_SQLITE)) == _SQLITE
        source = DatabaseSnapshot(path) if is_database else _PlainFile(path)
        self._add(name, path.stat().st_mode & _FOR_ALL, source)

    def _take_stores(self) -> None:
        plan = writing_plan(self._folder)
        if plan is None:
            self._add(STORE, _FOR_ALL, DatabaseSnapshot(self._folder.database), str(self._folder.database))
            return
        with closing(plan), plan.frozen() as record:
            for place in record.shards:
                self._take_shard(place)
        kept = record if self._moving else in_folders(record)
        self._add(PLACEMENT, _PRIVATE, _Content(msgspec.json.format(msgspec.json.encode(kept))))

    def _take_shard(self, place: ShardPlace) -> None:
        name = store_of(place)
        if not place.server:
            path = self._folder.path / place.folder / STORE
            if path.exists():  # a shard that was never written has none
                self._add(name, _FOR_ALL, DatabaseSnapshot(path), str(path))
        elif not self._moving:
            from levada.store.postgresql.connection import Address
            from levada.store.postgresql.conversion import SchemaSnapshot

            source = SchemaSnapshot(Address(place.server, place.schema))
            self._add(name, _FOR_ALL, source, source.place)

    def _add(self, name: str, mode: int, source: _Source, place: str = "") -> None:
        self._opened.enter_context(closing(source))
        self.members.append(Member(name, mode, source, place))


def store_of(place: ShardPlace) -> str:
    """The member that holds the store of a shard."""
    return STORE if place.folder == "." else f"{place.folder}/{STORE}"


def in_folders(record: PlacementRecord) -> PlacementRecord:
    """The same placement with every shard in its folder, on no server."""
    places = tuple(msgspec.structs.replace(place, server="", schema="") for place in record.shards)
    return msgspec.structs.replace(record, shards=places, home="")


def facts_of(path: Path, name: str, place: str, *, copy: bool = True) -> ShardFacts:
    """What a store holds, after reading all of it; `StoreDamaged` if it is not sound. A copy has no log."""
    mode = "mode=ro&immutable=1" if copy else "mode=rw"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)) as store:
            application, version = marks(store)
            if application != APPLICATION_ID:
                raise StoreDamaged(f"{name} is no store of Levada: use another backup")
            check_format(place or name, version, SCHEMA_VERSION, OLDEST_VERSION, "folder", older=True)
            check(store, path)
            pages, stored, versions, seq = store.execute(_COUNTS).fetchone()
    except sqlite3.Error as error:
        raise translated(error, path) from error
    return ShardFacts(name, place, version, pages, stored, versions, seq)


class _PlainFile:
    """A file that others may append to: as much of it as there is now."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self.bytes = os.fstat(self._file.fileno()).st_size

    def copy(self, target: Path, *, on_progress: Told) -> None:
        left = self.bytes
        with target.open("wb") as out:
            while left and (part := self._file.read(min(left, 1 << 20))):
                out.write(part)
                left -= len(part)
                on_progress(self.bytes - left, self.bytes)

    def close(self) -> None:
        self._file.close()


class _Content:
    """A file that is made for the copy."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.bytes = len(content)

    def copy(self, target: Path, *, on_progress: Told) -> None:
        write_durably(target, self._content, os.O_EXCL, _PRIVATE)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def copied(members: list[Member], folder: Path, on_progress: Callable[[str, int, int], None]) -> Iterator[ShardFacts]:
    """Copy members into a folder, synced, and give the facts of each store."""
    for member in members:
        target = folder / member.name
        target.parent.mkdir(exist_ok=True)
        member.copy(target, lambda done, total, name=member.name: on_progress(name, done, total))  # type: ignore[misc]
        if member.place:
            yield facts_of(target, member.name, member.place)
        with target.open("rb+") as file:
            os.fsync(file.fileno())
