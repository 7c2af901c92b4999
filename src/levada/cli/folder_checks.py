"""Is this data folder sound, and who uses it?"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from levada.adapters.sharded.shard import Shard
from levada.assemble.folder import DataFolder
from levada.assemble.stores import open_shard_reader, shard_folders
from levada.cli.checks import Check, failed, fine, worrying
from levada.cli.printing import plural, size
from levada.cli.small_file_checks import small_file_checks
from levada.clock import SystemClock
from levada.errors import LevadaError
from levada.flow.settings import Settings

__all__ = ["folder_checks"]

_SKEW = 60.0


def folder_checks(folder: DataFolder) -> Iterator[Check]:
    try:
        there = folder.exists()
    except LevadaError as error:
        yield _told(error, "collection")
        return
    if not there:
        yield fine("collection", f"none in {folder.path} yet", "levada crawl URL starts one")
        return
    yield _lock(folder.path / "lock")
    yield _last_settings(folder.path / "settings.json")
    yield from small_file_checks(folder)
    try:
        shards = shard_folders(folder)
    except LevadaError as error:
        yield _told(error, "placement")
        return
    for number, shard in enumerate(shards):
        of_shard = f" of shard {number}" if folder.placement.exists() else ""
        if shard.database.exists():
            yield _written_when(shard.database, of_shard)
        try:
            with closing(open_shard_reader(shard)) as store:
                yield from _database(shard, store, of_shard)
        except LevadaError as error:
            yield _told(error, f"database{of_shard}")


def _told(error: LevadaError, name: str) -> Check:
    found, _, advice = str(error).rpartition(": ")
    return failed(name, found or advice, advice if found else "")


def _database(folder: DataFolder, store: Shard, of_shard: str) -> Iterator[Check]:
    store.check()
    standing = store.standing(SystemClock().now())
    held = f"{plural(standing.stored, 'page')} stored of {standing.known:,} known, {size(standing.bytes)}"
    yield fine(f"database{of_shard}", f"sound; format {store.format}; {held}")
    yield _index(folder, store.newest_seq(), f"index{of_shard}")


def _index(folder: DataFolder, newest: int, name: str) -> Check:
    from levada.adapters.tantivy_index import TantivyIndex

    try:
        with closing(TantivyIndex(folder.index)) as index:
            position = index.position()
    except LevadaError as error:
        if folder.index.is_dir() and not os.access(folder.index, os.W_OK):
            return worrying(
                name, str(error), f"who searches must be able to write in {folder.index}: a lock is taken there"
            )
        return worrying(name, str(error), f"delete {folder.index}: the next search rebuilds it")
    if position > newest:
        advice = f"it belongs to another collection; delete {folder.index}: the next search rebuilds it"
        return worrying(name, f"at step {position:,}, the documents only at {newest:,}", advice)
    if position < newest:
        found = f"{plural(newest - position, 'step')} behind the documents"
        return fine(name, found, "the next search or crawl catches up")
    return fine(name, f"up to date, at step {position:,}")


def _lock(path: Path) -> Check:
    """Who holds it? Asked with a shared lock for an instant, so that nothing is written."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return fine("in use", "by nobody")
    except OSError as error:
        return worrying("in use", f"cannot be told ({error.strerror})", f"check who may read {path}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return fine("in use", "by nobody")
    except OSError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        return fine("in use", f"by process {holder}" if holder.isdigit() else "by a process")
    finally:
        os.close(descriptor)


def _last_settings(path: Path) -> Check:
    try:
        msgspec.json.decode(path.read_bytes(), type=Settings)
    except FileNotFoundError:
        return fine("last settings", "none: the defaults hold")
    except (OSError, msgspec.MsgspecError) as error:
        return worrying("last settings", f"{path} is not readable ({error})", "the next crawl writes it anew")
    return fine("last settings", str(path))


def _written_when(database: Path, of_shard: str) -> Check:
    ahead = database.stat().st_mtime - SystemClock().now()
    if ahead <= _SKEW:
        return fine(f"folder's time{of_shard}", "not ahead of the clock")
    advice = "the clock has gone back: set it, or pages wait that much longer for their next visit"
    return worrying(f"folder's time{of_shard}", f"written {ahead:,.0f} s in the future", advice)
