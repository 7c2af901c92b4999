"""What went wrong inside tantivy, in Levada's words?

tantivy-py raises ValueError for nearly everything and lets Rust panics through as a BaseException, so the text of
the error has to tell the cases apart.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from levada.adapters.index_folder import damaged
from levada.errors import LevadaError, StoreError, StoreFull, StoreLocked

__all__ = ["translated"]

_FULL = ("No space left", "os error 28", "Disk quota", "os error 122", "StorageFull")
_ROOM_TO_WORK = 1 << 20


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Every failure in the block leaves it as a `StoreError` about the index in `path`."""
    try:
        yield
    except LevadaError:
        raise
    except (ValueError, OSError, RuntimeError) as error:
        raise _meaning(error, path) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise damaged(path, f"made tantivy fail ({error})") from error


def _meaning(error: Exception, path: Path) -> StoreError:
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
    # A writer's thread that met the full disk dies, and the caller only hears that it died.
    return "killed" in text and _room(path) < _ROOM_TO_WORK


def _room(path: Path) -> int:
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize
