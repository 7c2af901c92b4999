"""The files of an index: position, site numbers, read-only links, and translation of tantivy's errors.

tantivy-py raises ValueError for nearly everything and lets Rust panics through as a BaseException, so the text of
the error has to tell the cases apart.

`position.json` holds the sequence number of the change log up to which the index is durable. It is replaced after
tantivy's commit, so a crash in between repeats a batch and loses none. `sites.txt` has one site per line: a site's
number is its line, in the order of first appearance, durable before the first page that carries it. Numbers outlive
a rebuild, unless it was asked for because something was forgotten (a file `rebuild`): then no name may stay.

tantivy creates a lock file even to read, so it gets a folder of its own: a copy of the newest commit, and links to
the segments. The writer may delete a segment before tantivy has opened it: then there is a newer commit, and the
reader tries again.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from levada.core.errors import IndexOutdated, LevadaError, StoreDamaged, StoreError, StoreFull, StoreLocked, StoreTooNew
from levada.core.files import sync_folder, write_durably

_FULL = ("No space left", "os error 28", "Disk quota", "os error 122", "StorageFull")
_ROOM_TO_WORK = 1 << 20


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn every failure in the block into a `StoreError` about the index in `path`."""
    try:
        yield
    except LevadaError:
        raise
    except (ValueError, OSError, RuntimeError) as error:
        raise _translation(error, path) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise damaged(path, f"made tantivy fail ({error})") from error


def _translation(error: Exception, path: Path) -> StoreError:
    text = str(error)
    if _is_full(error, text, path):
        return StoreFull(f"the disk with the index in {path} is full: make room and start again, nothing is lost")
    if "LockBusy" in text or isinstance(error, BlockingIOError):
        return StoreLocked(f"another process is writing the index in {path}: only one can")
    if isinstance(error, OSError) or "Permission denied" in text:
        return StoreError(f"the index in {path} cannot be written or read: {text}")
    return damaged(path, f"cannot be read ({text})")


def _is_full(error: Exception, text: str, path: Path) -> bool:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    if any(sign in text for sign in _FULL):
        return True
    # A writer's thread that meets the full disk dies, and the caller learns only that it died.
    if "killed" not in text:
        return False
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize < _ROOM_TO_WORK


class _Position(msgspec.Struct):
    format: int
    position: int


def damaged(path: Path, what: str) -> StoreDamaged:
    return StoreDamaged(f"the index in {path} {what}; it can be rebuilt from the documents")


class IndexFolder:
    """The files of one index."""

    def __init__(self, path: Path, format: int) -> None:
        self.path = path
        self.segments = path / "segments"
        self.links = path / "links.db"
        self.vectors = path / "vectors.db"  # see `levada.search.hybrid.vectors`
        self._format = format
        self._position = path / "position.json"
        self._sites = path / "sites.txt"
        self._to_rebuild = path / "rebuild"

    def ask_for_rebuild(self) -> None:
        """Have the next writer build the index anew: words of deleted pages stay in its files until then."""
        with translated(self.path):
            write_durably(self._to_rebuild, b"", os.O_TRUNC)
            sync_folder(self.path)

    @property
    def is_to_be_rebuilt(self) -> bool:
        return self._to_rebuild.exists()

    def make(self) -> None:
        """Prepare the folder for its writer."""
        position = self.read_position()
        self.segments.mkdir(parents=True, exist_ok=True)
        if not (self.segments / "meta.json").exists():
            if position:
                raise damaged(self.path, "has lost its segments")
            self.write_position(0)
        self._drop_torn_line()

    def wipe(self) -> None:
        """Leave an empty index, whatever was there, unless a writer holds it."""
        import shutil  # imported here: most writers never wipe

        with self._lock():
            self.path.mkdir(parents=True, exist_ok=True)
            # In this order a crash at any point leaves an index that is behind, or empty, never one that is ahead.
            # On a full disk the first step fails, and the next ones make room.
            with suppress(OSError):
                self.write_position(0)
            (self.segments / "meta.json").unlink(missing_ok=True)
            for name in ("", "-journal"):
                self.links.with_name(self.links.name + name).unlink(missing_ok=True)
                self.vectors.with_name(self.vectors.name + name).unlink(missing_ok=True)
            shutil.rmtree(self.segments, ignore_errors=True)
            self.write_position(0)
            try:
                self._whole_lines()
            except StoreDamaged:
                self._sites.unlink()
            if self.is_to_be_rebuilt:  # last: until here a crash leaves it to be done again
                self._sites.unlink(missing_ok=True)
                self._to_rebuild.unlink()

    def read_position(self) -> int:
        """0 where nothing is; raises if the index is of another format, or the file of another program."""
        try:
            state = msgspec.json.decode(self._position.read_bytes(), type=_Position)
        except FileNotFoundError:
            return 0
        except msgspec.DecodeError as error:
            raise damaged(self.path, f"cannot be read ({error})") from error
        if state.format > self._format:
            raise StoreTooNew(
                f"the index in {self.path} was written by a newer Levada: update Levada, or delete that folder "
                "and the next crawl builds it anew from the documents"
            )
        if state.format < self._format:
            raise IndexOutdated(str(damaged(self.path, "was written by an older Levada")))
        if state.position < 0:
            raise damaged(self.path, "has lost its position")
        return state.position

    def write_position(self, position: int) -> None:
        draft = self._position.with_suffix(".new")
        write_durably(draft, msgspec.json.encode(_Position(self._format, position)), os.O_TRUNC)
        draft.replace(self._position)
        sync_folder(self.path)

    def read_sites(self) -> dict[str, int]:
        """Number of each site, from 1."""
        return {site: number for number, site in enumerate(self._whole_lines(), 1)}

    def append_sites(self, sites: Iterable[str]) -> None:
        write_durably(self._sites, "".join(f"{site}\n" for site in sites).encode(), os.O_APPEND)

    def _drop_torn_line(self) -> None:
        """A crash may have cut the last line; nothing refers to it yet."""
        whole = sum(len(line.encode()) + 1 for line in self._whole_lines())
        if self._sites.exists() and self._sites.stat().st_size != whole:
            os.truncate(self._sites, whole)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """tantivy's own lock on writing, taken by hand: tantivy cannot open what is damaged."""
        try:
            descriptor = os.open(self.segments / ".tantivy-writer.lock", os.O_RDWR)
        except (FileNotFoundError, NotADirectoryError):
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(descriptor)

    def _whole_lines(self) -> list[str]:
        try:
            return self._sites.read_bytes().decode().split("\n")[:-1]
        except FileNotFoundError:
            return []
        except UnicodeDecodeError as error:
            raise damaged(self.path, f"has lost its site numbers ({error})") from error


_COMMIT = "meta.json"


def may_write(segments: Path) -> bool:
    return os.access(segments, os.W_OK)


class IndexLinks:
    """A folder `path` that stands for `segments` as of now; deleted by `close`."""

    def __init__(self, segments: Path) -> None:
        from tempfile import TemporaryDirectory  # imported here: most folders may be written

        self._folder = TemporaryDirectory(prefix="levada-index-")
        self.path = Path(self._folder.name)
        (self.path / _COMMIT).write_bytes((segments / _COMMIT).read_bytes())
        for file in segments.resolve().iterdir():
            if file.name != _COMMIT and file.suffix != ".lock":
                (self.path / file.name).symlink_to(file)

    def close(self) -> None:
        self._folder.cleanup()
