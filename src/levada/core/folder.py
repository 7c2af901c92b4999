"""The data folder of a collection: its files and locks.

    levada.db       frontier, sites, documents (SQLite): the store
    levada.db.moved.backup   the store that lay here before a move to a server; delete it when all is well
    levada.db.format-6.backup   the store as it was before an upgrade from format 6; delete it when all is well
    index/          the search index; can be deleted at any time, it is rebuilt from the documents
    trends.db       term counts of documents and of changes; can be deleted, and is counted again
    orders.db       control commands, until the crawl has executed them
    access.db       users, keys, sessions and the audit log of a server that has this folder as its first
    hooks.db        notifications: targets, the position of each in the change log, and messages on their way
    placement.json  which shard holds what, if there are several: each then has its own levada.db, index/ and
                    trends.db in a folder shard-0/, shard-1/ ... (or on a server)
    maps/           the warm map of the server, and other maps that were loaded here
    rendering.json  of which sites pages were worth rendering, by hashes of their names
    cookies/        the sessions with sites that set cookies, a file for each that only its user can read
    queries.jsonl   the queries of the server, if it records them
    bodies.json     where texts and bodies lie, if that is not in the store
    engine          the name of the plug-in that keeps the collection, if it is not levada.db
    settings.json   the settings that the collection keeps, each with its source and time
    planned.json    the settings by which the visits are planned; others bring visits forward first
    forget.json     says that a forget has begun and is not finished; it names nothing
    live.json       the live status of the running crawl; deleted when it ends
    demo.json       says that levada demo made this collection, and may replace it
    notify.lock     held by the one process that sends notifications
    moving.lock     held while pages move between shards, or are exported
    upgrade.lock    held while the store is upgraded to a newer format
    settings.lock   held while settings.json is changed
    lock            held by the one crawl that writes here

The locks are the kernel's: they end with their process, however that ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from levada.core.errors import NotFound, Refused, StoreError, StoreFull, StoreLocked, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from levada.core.configuration.kept import KeptValue, SettingChange
    from levada.core.configuration.layers import Configuration, Given
    from levada.core.settings import Settings


@contextmanager
def only_mover(folder: DataFolder) -> Iterator[None]:
    """Hold the lock under which pages move between shards, alone."""
    with _locked(
        os.open(_lock(folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644),
        fcntl.LOCK_EX,
        f"pages are being moved or exported in {folder.path} already: wait until that has ended",
    ):
        yield


@contextmanager
def only_notifier(folder: DataFolder) -> Iterator[None]:
    """Hold the lock under which notifications are sent, alone."""
    with writing(folder.path):
        descriptor = os.open(folder.path / "notify.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with _locked(descriptor, fcntl.LOCK_EX, f"another process sends the notifications of {folder.path}"):
        yield


@contextmanager
def nobody_moves(folder: DataFolder) -> Iterator[None]:
    """Keep each page on its shard: nobody moves pages in the meantime."""
    try:
        descriptor = os.open(_lock(folder), os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:  # a collection of another user, of which no page was ever moved
        yield
        return
    with _locked(
        descriptor,
        fcntl.LOCK_SH,
        f"pages are being moved in {folder.path}, and some could be missed: wait until that has ended",
    ):
        yield


@contextmanager
def _locked(descriptor: int, how: int, otherwise: str) -> Iterator[None]:
    try:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreLocked(otherwise) from None
        yield
    finally:
        os.close(descriptor)


def _lock(folder: DataFolder) -> str:
    return str(folder.path / "moving.lock")


class DataFolder:
    """The files of a collection."""

    def __init__(self, path: Path, given: Given | None = None) -> None:
        self.path = path
        self.given = given  # the settings that this command is given, by a file and flags
        self._resolved: Configuration | None = None
        self.database = path / "levada.db"
        self.index = path / "index"
        self.trends = path / "trends.db"
        self.commands = path / "orders.db"
        self.access = path / "access.db"
        self.hooks = path / "hooks.db"
        self.queries = path / "queries.jsonl"
        self.maps = path / "maps"
        self.unfinished = path / "forget.json"
        self.planned = path / "planned.json"
        self.rendering = path / "rendering.json"
        self.placement = path / "placement.json"
        self._settings = path / "settings.json"
        self.live_file = path / "live.json"
        self.engine_file = path / "engine"
        self.mirror_file = path / "mirror"
        self._lock = path / "lock"
        # strings: `identity` runs at every poll, and paths are too slow for it
        self._names = str(path), str(self._settings)
        self._written = 0, 0  # the inodes of the lock and the database that this process writes

    def make(self) -> None:
        self.must_be_folder()
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def exists(self) -> bool:
        """Whether there is a collection in it."""
        self.must_be_folder()
        with _reading(self.path):
            return self.database.exists() or self.placement.exists() or self.engine_file.exists()

    def engine(self) -> str:
        """Which kind of store holds the collection; a plug-in is noted here, SQLite and PostgreSQL need no note."""
        try:
            return self.engine_file.read_text(encoding="utf-8")
        except OSError:
            return "sqlite"

    def must_be_folder(self) -> None:
        """Raise if the path is something other than a folder; it may be missing."""
        with _reading(self.path):
            is_other = self.path.exists() and not self.path.is_dir()
        if is_other:
            raise UsageError(f"{self.path} is not a folder: name the one that holds the collection, or a new one")

    def identity(self) -> tuple[int, ...]:
        """Changes when the folder is made anew, or another crawl begins in it."""
        return _inode(self._names[0]), _inode(self._names[1])

    def must_exist(self) -> None:
        if not self.exists():
            raise NotFound(f"there is no collection in {self.path}: start one with 'levada crawl URL'")

    @property
    def is_mirror(self) -> bool:
        """Whether the folder only stands for one on another machine, see `levada.collection.storage.mirror`."""
        return self.mirror_file.exists()

    def must_be_home(self, what: str) -> None:
        """Raise if the data folder is on another machine; `what` is done there."""
        if self.is_mirror:
            raise Refused(f"{what} on the machine that crawls, where the data folder is: this one serves its pages")

    @property
    def is_held(self) -> bool:
        """Whether this process is the only writer, by this object."""
        return self._written[0] != 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer."""
        if self.is_mirror:
            raise StoreLocked("the data folder of this collection is on another machine: crawl there")
        with writing(self._lock):
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._take(descriptor)
            self._written = os.fstat(descriptor).st_ino, 0
            yield
        finally:
            self._written = 0, 0
            os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
            raise StoreLocked(
                f"{self.path} is in use by another crawl (process {holder}): wait for it, or name another --data"
            ) from None
        with writing(self.path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)

    def save_settings(self, settings: Settings, by: str = "a program") -> list[SettingChange]:
        """Keep these settings, of those that were not kept already; returns what changed.

        Kept are the values that this command was given, and those that differ from what was in force when this
        object read the settings. What the environment says is not kept.
        """
        from levada.core.configuration.layers import Given
        from levada.core.configuration.updates import kept_after

        given, seen = self.given or Given(), self._resolved
        with self._settings_locked():
            held = self.kept_settings()
            kept, changes = kept_after(settings, held, given, seen, os.environ, by)
            self._write_settings(kept)
        return changes

    def change_settings(self, changes: Mapping[str, Any], by: str) -> list[SettingChange]:
        """Keep these values by `section.key`, None: none; a running crawl picks them up. Returns what changed."""
        from levada.core.configuration.updates import kept_with

        self.must_exist()
        self.must_be_home("settings are changed")
        with self._settings_locked():
            kept, done = kept_with(changes, self.kept_settings(), os.environ, by)
            if done:
                self._write_settings(kept)
        return done

    def mirror_settings(self, settings: Settings, by: str) -> None:
        """Keep exactly these settings, which another machine decides."""
        from levada.core.configuration.kept import KeptValue
        from levada.core.settings import Settings, values_of

        usual = values_of(Settings())
        self._write_settings(
            {key: KeptValue(value, by) for key, value in values_of(settings).items() if value != usual.get(key)}
        )

    @contextmanager
    def _settings_locked(self) -> Iterator[None]:
        with writing(self.path):
            descriptor = os.open(self.path / "settings.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write_settings(self, kept: Mapping[str, KeptValue]) -> None:
        from levada.core.configuration.kept import encode_kept, holds_secrets

        fresh = self._settings.with_suffix(".new")
        with writing(self.path):
            fresh.unlink(missing_ok=True)
            fresh.touch(0o600 if holds_secrets(kept) else 0o666)  # server addresses may hold passwords
            fresh.write_bytes(encode_kept(kept))
            fresh.replace(self._settings)
        self._resolved = None

    def save_live(self, content: bytes) -> None:
        """Write the live status, all or nothing. A full disk affects only those who watch it."""
        self._must_be_written()
        fresh = self.live_file.with_suffix(".new")
        with suppress(OSError):
            fresh.write_bytes(content)
            fresh.replace(self.live_file)

    def _must_be_written(self) -> None:
        """Raise if the files were deleted: writing to them would go on for ever, and nobody could find the
        content."""
        lock, database = self._written
        if not lock:
            return
        now = _inode(str(self._lock)), _inode(str(self.database))
        if now[0] != lock or (database and now[1] != database):
            what = self.path if now[0] != lock else self.database
            raise StoreError(f"{what} was deleted or replaced while the crawl ran: start the crawl again")
        self._written = now

    def forget_live(self) -> None:
        with suppress(OSError):
            self.live_file.unlink(missing_ok=True)

    def settings(self) -> Settings:
        """The settings in force: defaults, and what the user, the collection, this command and the environment say."""
        return self.configuration().settings

    def configuration(self) -> Configuration:
        """The settings in force, and where each comes from."""
        from levada.core.configuration.layers import Given, resolve

        self._resolved = resolve(self.kept_settings(), self.given or Given(), os.environ)
        return self._resolved

    def kept_settings(self) -> dict[str, KeptValue]:
        """What the collection keeps, by `section.key`; nothing if there is no collection."""
        from levada.core.configuration.kept import read_kept
        from levada.core.errors import SettingsError

        try:
            return read_kept(self._settings.read_bytes(), str(self._settings))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, msgspec.MsgspecError, SettingsError) as error:
            said = str(error).removeprefix(f"{self._settings}: ")
            raise StoreError(
                f"{self._settings} cannot be read ({said}): correct it, or move it away and give the settings again "
                "with --config"
            ) from None

    def settings_mark(self) -> tuple[int, int]:
        """Changes whenever what the collection keeps changes."""
        try:
            found = os.stat(self._names[1])
        except OSError:
            return 0, 0
        return found.st_ino, found.st_mtime_ns


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Translate a failure to write in this folder."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFull(f"the disk that holds {path} is full: make room and run the same command again") from None
        raise StoreError(f"cannot write in {path}: {error.strerror}") from None


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot read {path} ({error.strerror}): check its name, and who may read it") from None
