"""How does a file appear only when it is whole?

It is written beside its place under another name, made durable, and moved there at the end. A process that is
killed leaves at most the other name behind.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Protocol

from levada.errors import LevadaError, StoreFull, UsageError

__all__ = ["CountingOutput", "Output", "draft_of", "export_failure", "standard_output", "whole_file"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Output(Protocol):
    """What a writer needs."""

    def write(self, data: bytes, /) -> int: ...


class CountingOutput:
    """A binary output that knows how much went through it; a pipe need not be able to tell."""

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
        """The output belongs to whoever opened it."""
        self.flush()
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def draft_of(path: Path, ending: str = "part") -> Path:
    """A name beside `path` that nobody else uses, not even a killed process that had our number."""
    return path.with_name(f".{path.name[:100]}.{token_hex(6)}.{ending}")


def export_failure(error: OSError, where: object) -> LevadaError:
    """One line that says what to do."""
    if error.errno in _FULL:
        return StoreFull(f"no space left for {where}: free some, and start again")
    return LevadaError(f"cannot write {where}: {error.strerror or error}")


@contextmanager
def standard_output(out: BinaryIO) -> Iterator[BinaryIO]:
    """For what is piped on: a full disk behind it is met here, not after the command has said that all is well."""
    try:
        yield out
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise export_failure(error, "standard output") from error


@contextmanager
def whole_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """A file to write that takes its place when the block ends well, and is gone otherwise."""
    try:
        if _is_device(path):
            with path.open("wb") as out:
                yield out
            return
        _refuse_existing(path, force)
        draft = draft_of(path)
        with _removed_at_the_end(draft), draft.open("xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
            _put_in_place(draft, path, force)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise export_failure(error, path) from error


def _is_device(path: Path) -> bool:
    """/dev/null and pipes are written to, never replaced."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _refuse_existing(path: Path, force: bool) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file in it")
    if path.exists() and not force:
        raise UsageError(f"{path} is there already: add --force to replace it")


@contextmanager
def _removed_at_the_end(draft: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _put_in_place(draft: Path, path: Path, force: bool) -> None:
    if force:
        draft.replace(path)
        return
    try:
        os.link(draft, path)  # unlike a rename, this fails if somebody else was faster
    except FileExistsError:
        raise UsageError(f"{path} has appeared meanwhile: add --force to replace it") from None
    except OSError:
        draft.replace(path)  # a file system without links
