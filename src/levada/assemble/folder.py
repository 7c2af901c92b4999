"""What lies in a data folder, and who may write in it?

    levada.db       frontier, sites, documents (SQLite): the truth
    index/          the search index; can be deleted at any time, it is rebuilt from the documents
    trends.db       how often terms stand in documents and were added to them; can be deleted, and is counted again
    orders.db       what somebody asks of the crawl from outside, until it is obeyed
    hooks.db        who is told of changes, and how far each is
    placement.json  which shard holds what, if there are several: each then has its own levada.db, index/ and
                    trends.db in a folder shard-0/, shard-1/ ... (or on a server)
    maps/           what levada warm made for the server, and other maps that were loaded here
    queries.jsonl   what the server was asked, if it was told to write that down
    settings.json   the settings of the latest crawl, so that later commands see its clock
    live.json       how the crawl that runs stands just now; gone when it has ended
    demo.json       says that levada demo made this collection, and may replace it
    moving.lock     held by whoever moves pages between shards, or exports them
    lock            held by the one crawl that writes here

The lock is the kernel's: it goes with its process, however that ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from levada.errors import NotFound, StoreError, StoreFull, StoreLocked, UsageError

if TYPE_CHECKING:  # the children of a crawl open its folder too, and need not load what they do not read there
    from levada.flow.live import LiveStatus
    from levada.flow.settings import Settings

__all__ = ["DataFolder"]


class DataFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "levada.db"
        self.index = path / "index"
        self.trends = path / "trends.db"
        self.orders = path / "orders.db"
        self.hooks = path / "hooks.db"
        self.queries = path / "queries.jsonl"
        self.placement = path / "placement.json"
        self._settings = path / "settings.json"
        self._live = path / "live.json"
        self._lock = path / "lock"
        self._names = str(path), str(self._settings)  # asked for at every look, which paths would be too slow for
        self._written = 0, 0  # the lock and the database that the crawl of this process writes

    def make(self) -> None:
        self.must_be_folder()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _folder_error(self.path, error) from None

    def exists(self) -> bool:
        """Is there a collection in it?"""
        self.must_be_folder()
        try:
            return self.database.exists() or self.placement.exists()
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def must_be_folder(self) -> None:
        """Or nothing yet."""
        try:
            is_other = self.path.exists() and not self.path.is_dir()
        except OSError as error:
            raise _unreadable(self.path, error) from None
        if is_other:
            raise UsageError(f"{self.path} is not a folder: name the one that holds the collection, or a new one")

    def identity(self) -> tuple[int, ...]:
        """Another one when the folder was made anew, or another crawl has begun in it."""
        return _inode(self._names[0]), _inode(self._names[1])

    def must_exist(self) -> None:
        if not self.exists():
            raise NotFound(f"there is no collection in {self.path}: start one with 'levada crawl URL'")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _folder_error(self._lock, error) from None
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
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        except OSError as error:
            raise _folder_error(self.path, error) from None

    def save_settings(self, settings: Settings) -> None:
        fresh = self._settings.with_suffix(".new")
        try:
            fresh.unlink(missing_ok=True)
            fresh.touch(0o600 if settings.store.servers else 0o666)  # addresses of servers may hold passwords
            fresh.write_bytes(msgspec.json.format(msgspec.json.encode(settings)))
            fresh.replace(self._settings)
        except OSError as error:
            raise _folder_error(self.path, error) from None

    def save_live(self, status: LiveStatus) -> None:
        """Whole or not at all; a disk that is full costs nobody but who looks."""
        from levada.assemble.live_file import live_content

        self._must_be_written()
        fresh = self._live.with_suffix(".new")
        with suppress(OSError):
            fresh.write_bytes(live_content(status))
            fresh.replace(self._live)

    def _must_be_written(self) -> None:
        """Files that were deleted can be written on for ever, and nobody would ever find what is in them."""
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
            self._live.unlink(missing_ok=True)

    def live(self) -> LiveStatus | None:
        """How the crawl that runs here stands, a second ago; None if none runs."""
        from levada.assemble.live_file import read_live

        return read_live(self._live)

    def settings(self) -> Settings:
        """Those of the latest crawl; the defaults if there was none."""
        from levada.flow.settings import Settings

        try:
            return msgspec.json.decode(self._settings.read_bytes(), type=Settings)
        except (FileNotFoundError, NotADirectoryError):
            return Settings()
        except (OSError, msgspec.MsgspecError) as error:
            raise StoreError(
                f"{self._settings} cannot be read ({error}): delete it, and the next crawl writes it anew"
            ) from None


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _folder_error(path: Path, error: OSError) -> StoreError:
    if error.errno == errno.ENOSPC:
        return StoreFull(f"the disk that holds {path} is full: make room and run the same command again")
    return StoreError(f"cannot write in {path}: {error.strerror}")


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"cannot read {path} ({error.strerror}): check its name, and who may read it")
