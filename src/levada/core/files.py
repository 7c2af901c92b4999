"""Files that appear only when they are complete, and survive a crash.

A file is written next to its place under a draft name, synced, and moved at the end. A killed process leaves at
most the draft behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, BinaryIO

from levada.core.errors import LevadaError, StoreFull, StoreLocked, UsageError

if TYPE_CHECKING:
    from levada.core.records import Document

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_durably(path: Path, content: bytes, how: int, mode: int = 0o644) -> None:
    """Write and sync. `how` treats an existing file: `os.O_TRUNC`, `os.O_APPEND` or `os.O_EXCL`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, mode)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Sync the names in a folder, so that a file moved there is still there after a crash."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def replacing(target: Path, reach: Callable[[str], None] = lambda step: None) -> Iterator[Path]:
    """The name of a draft to write beside `target`; when the block succeeds it is synced and takes that place.

    For one process at a time: the draft of a killed one is overwritten. `reach` is told each step.
    """
    draft = target.with_name(f"{target.name}.part")
    reach("begin")
    try:
        draft.unlink(missing_ok=True)
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        reach("before-rename")
        draft.replace(target)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    sync_folder(target.parent)
    reach("after-rename")


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """An empty folder for this process alone, deleted at the end unless it was moved away. What a killed process
    left in it is deleted first."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(descriptor), path.stat()):
                raise BlockingIOError  # its last user deleted it while we opened it
        except (BlockingIOError, FileNotFoundError):
            raise StoreLocked(f"another process writes in {path}: wait until it has ended") from None
        _empty(path)
        path.chmod(0o700)
        yield path
    finally:
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()


class CountingOutput:
    """A binary output that counts its bytes, because a pipe has no `tell`."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.written = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self._out.write(data)
        self.written += len(data)
        return len(data)

    def tell(self) -> int:
        return self.written

    def flush(self) -> None:
        self._out.flush()

    def close(self) -> None:
        """Flush only: the caller who opened the output closes it."""
        self.flush()
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class ExportContext:
    """How an exporter opens its output, a file that appears when it is whole or standard output, and what it may ask.

    ```python
    with ExportContext().open(Path("pages.txt")) as file:
        file.write(b"one line")
    ```
    """

    def __init__(
        self,
        *,
        force: bool = False,
        stdout: BinaryIO | None = None,
        markdown: Callable[[Document], str] = lambda document: document.text,
    ) -> None:
        self.force = force
        """Whether what is there already may be replaced."""
        self.markdown = markdown
        """The main content of a document as Markdown; outside an export, its text."""
        self._stdout = stdout

    @property
    def is_piped(self) -> bool:
        """Whether the output is standard output."""
        return self._stdout is not None

    @contextmanager
    def open(self, out: Path) -> Iterator[CountingOutput]:
        opened = standard_output(self._stdout) if self._stdout else whole_file(out, force=self.force)
        with opened as file:
            yield CountingOutput(file)


def draft_of(path: Path, ending: str = "part") -> Path:
    """A name next to `path` that no other process uses, nor any killed one did."""
    return path.with_name(f".{path.name[:100]}.{token_hex(6)}.{ending}")


def export_failure(error: OSError, where: object) -> LevadaError:
    """The error for a failed write, in one line that says what to do."""
    if error.errno in _FULL:
        return StoreFull(f"no space left for {where}: free some, and start again")
    return LevadaError(f"cannot write {where}: {error.strerror or error}")


@contextmanager
def standard_output(out: BinaryIO) -> Iterator[BinaryIO]:
    """Flush `out` at the end, so that a full disk behind a pipe fails here and not after the success message."""
    try:
        yield out
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise export_failure(error, "standard output") from error


@contextmanager
def whole_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """A file to write; it takes its place when the block succeeds and is removed otherwise."""
    try:
        if _is_device(path):
            with path.open("wb") as out:
                yield out
            return
        if path.is_dir():
            raise UsageError(f"{path} is a folder: name a file in it")
        if path.exists() and not force:
            raise UsageError(f"{path} is there already: add --force to replace it")
        draft = draft_of(path)
        try:
            with draft.open("xb") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
                _put_in_place(draft, path, force)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise export_failure(error, path) from error


def _is_device(path: Path) -> bool:
    """Whether this is /dev/null, a pipe or the like: written to, never replaced."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _put_in_place(draft: Path, path: Path, force: bool) -> None:
    if force:
        draft.replace(path)
        return
    try:
        os.link(draft, path)  # unlike a rename, this fails if another process was faster
    except FileExistsError:
        raise UsageError(f"{path} has appeared meanwhile: add --force to replace it") from None
    except OSError:
        draft.replace(path)  # a file system without links
