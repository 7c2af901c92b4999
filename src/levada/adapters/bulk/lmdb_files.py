"""How do writers and readers of one process share an LMDB file, which may be opened only once in it?"""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Lock
from typing import Any

import lmdb

from levada.errors import NotFound, StoreDamaged, StoreError, StoreFull

__all__ = ["close_file", "open_file"]

_ROOM = 1 << 40  # of addresses, not of disk: the file grows as it is filled
_TABLES = 256
_LEAST_ROOM = 1 << 16
_lock = Lock()
_open: dict[Path, tuple[Any, int, bool]] = {}  # the file, how many hold it, and whether they may only read


def open_file(path: Path, *, read_only: bool) -> Any:
    """Each call needs a `close_file`."""
    place = path.absolute()
    with _lock:
        if place not in _open:
            _open[place] = (_opened(place, read_only), 0, read_only)
        file, holders, only_read = _open[place]
        if only_read and not read_only:
            raise StoreError(f"{path} is open for reading in this process: close that first")
        _open[place] = (file, holders + 1, only_read)
        return file


def close_file(path: Path) -> None:
    place = path.absolute()
    with _lock:
        file, holders, only_read = _open.pop(place)
        if holders > 1:
            _open[place] = (file, holders - 1, only_read)
        else:
            file.close()


def _check_room(path: Path) -> None:
    """LMDB writes its table of readers through memory: without room the system ends the process (SIGBUS)."""
    if shutil.disk_usage(path).free < _LEAST_ROOM:
        raise StoreFull(f"no space left for the map {path}: free some, and load again")


def _opened(path: Path, read_only: bool) -> Any:
    if read_only and not (path / "data.mdb").exists():
        raise NotFound(f"there is no map {path.name} in {path.parent}")
    try:
        if not read_only:
            path.mkdir(parents=True, exist_ok=True)
            _check_room(path)
        file = lmdb.open(str(path), map_size=_ROOM, max_dbs=_TABLES, readonly=read_only)
    except (OSError, lmdb.Error) as error:
        raise StoreDamaged(f"{path} is no map that can be opened: {error}") from error
    file.reader_check()  # those who were killed while reading
    return file
