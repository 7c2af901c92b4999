"""What does this failure of the database mean for its user?"""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from levada.errors import StoreDamaged, StoreError, StoreFull, StoreLocked

__all__ = ["translated"]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_BUSY, _LOCKED, _READONLY, _CORRUPT, _DISK_FULL, _CANNOT_OPEN, _NOT_A_DATABASE = 5, 6, 8, 11, 13, 14, 26


def translated(error: sqlite3.Error | OSError, path: Path) -> StoreError:
    """One sentence that says what happened and what to do; nothing of the failed batch was written."""
    if isinstance(error, OSError):
        return _full(path) if error.errno in _FULL else StoreError(f"{path} cannot be used: {error}")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == _DISK_FULL:
        return _full(path)
    if code in {_BUSY, _LOCKED}:
        return StoreLocked(f"{path} is held by another process: wait for it, or stop it")
    if code in {_CORRUPT, _NOT_A_DATABASE}:
        return StoreDamaged(
            f"{path} is damaged or not a database ({error}): restore a copy, or move it away and crawl again"
        )
    if code in {_READONLY, _CANNOT_OPEN}:
        return StoreError(
            f"{path} cannot be opened for this ({error}): check that its folder exists and may be written"
        )
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreError(f"{path} cannot be read or written ({error}, {name}): check the disk, then try again")


def _full(path: Path) -> StoreFull:
    return StoreFull(f"no space left for {path}: nothing of this batch was written; free some space and go on")
