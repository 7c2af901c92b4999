"""What does this failure of the server mean for its user?"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from levada.errors import StoreDamaged, StoreError, StoreFull, StoreLocked

if TYPE_CHECKING:
    import psycopg

__all__ = ["is_away", "translated", "unreachable"]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DISK_FULL = "53100"
_NO_CONNECTION_LEFT = "53300"
_IDLE_TOO_LONG = "25P03"
_WAITED = {
    "55P03",
    "40P01",
    "40001",
    "57014",
}  # a lock not had in time, a deadlock, a clash, a time limit
_DAMAGED = {"XX001", "XX002"}
_OTHER_TABLES = {"42P01", "42703", "3F000"}  # no such table, column or schema
_NOT_ALLOWED = {"25006", "42501"}


def translated(error: psycopg.Error | OSError, place: str) -> StoreError:
    """One sentence that says what happened and what to do; nothing of the failed batch was written."""
    if isinstance(error, OSError):
        return _full(place) if error.errno in _FULL else StoreError(f"{place} cannot be used: {error}")
    code, words = error.sqlstate or "", _words(error)
    if is_away(error):
        return StoreError(f"{place} is away ({words}): start again when the server runs; nothing is lost")
    if code == _DISK_FULL:
        return _full(place)
    if code in _WAITED:
        return StoreLocked(f"{place} is held by another process ({words}): try again")
    if code in _DAMAGED:
        return StoreDamaged(f"{place} is damaged ({words}): restore a copy, or crawl again into another schema")
    if code in _OTHER_TABLES:
        return StoreDamaged(f"{place} does not hold what Levada wrote there ({words}): was it dropped or changed?")
    if code in _NOT_ALLOWED:
        return StoreError(f"{place} does not allow this ({words}): open it for writing, as a user who may")
    return StoreError(f"{place} cannot be read or written ({words}, {code or type(error).__name__})")


def unreachable(error: psycopg.Error, place: str) -> StoreError:
    """Of a connection that could not be made."""
    return StoreError(
        f"{place} is away or does not let us in ({_words(error)}): see that it runs, and that user, password and "
        "database are right, then start again; nothing is lost"
    )


def is_away(error: psycopg.Error) -> bool:
    """Is it the connection that failed, or the server that went, and not what was asked?"""
    code = error.sqlstate
    if code is None:
        return type(error).__name__ in {"OperationalError", "ConnectionTimeout"}
    return code.startswith(("08", "57P")) or code in {_NO_CONNECTION_LEFT, _IDLE_TOO_LONG}


def _words(error: psycopg.Error) -> str:
    """The first line; the others may quote what was to be written."""
    said = error.diag.message_primary or str(error)
    return next((line.strip() for line in said.splitlines() if line.strip()), type(error).__name__)


def _full(place: str) -> StoreFull:
    return StoreFull(f"no space left for {place}: nothing of this batch was written; free some space and go on")
