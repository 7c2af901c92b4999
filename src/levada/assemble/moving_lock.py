"""Do pages move from shard to shard now? Whoever moves them is alone; whoever must meet each page once, keeps
movers out."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from levada.assemble.folder import DataFolder
from levada.errors import StoreLocked

__all__ = ["nobody_moves", "only_mover"]


@contextmanager
def only_mover(folder: DataFolder) -> Iterator[None]:
    """Nobody else moves pages meanwhile, or changes where they lie."""
    with _locked(
        os.open(_lock(folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644),
        fcntl.LOCK_EX,
        f"pages are being moved or exported in {folder.path} already: wait until that has ended",
    ):
        yield


@contextmanager
def nobody_moves(folder: DataFolder) -> Iterator[None]:
    """Each page stays on its shard meanwhile."""
    try:
        descriptor = os.open(_lock(folder), os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:  # somebody else's collection, of which nothing was ever moved
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
