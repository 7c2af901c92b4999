"""Checks of a data folder."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from levada.collection.doctor.checks import Check, failed, fine, worrying
from levada.core.clock import SystemClock
from levada.core.errors import LevadaError
from levada.core.folder import DataFolder
from levada.core.settings import saved_settings
from levada.core.words import plural, size
from levada.store.base import Shard
from levada.store.opening import open_shard_reader, shard_folders


def small_file_checks(folder: DataFolder) -> Iterator[Check]:
    """The small databases that are damaged; those that are missing are fine."""
    if trouble := _trouble(folder.commands):
        advice = f"no crawl starts with it: delete {folder.commands} and give the waiting commands again"
        yield failed("orders", trouble, advice)
    if trouble := _trouble(folder.hooks):
        advice = f"nobody is told of changes: restore a copy of {folder.hooks}, or delete it and add them again"
        yield failed("webhooks", trouble, advice)
    if trouble := _trouble(folder.trends):
        yield worrying("counts", trouble, "'levada trends' counts again")


def _trouble(path: Path) -> str:
    """What is wrong with this file; "" if nothing is, or it is not there."""
    try:
        if not path.exists():
            return ""
        if not path.is_file():
            return f"{path} is not a file"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except (OSError, sqlite3.OperationalError):
        return ""  # busy, or in a folder that we may only read: that is no damage
    except sqlite3.Error as error:
        return f"{path} cannot be read ({error})"
    return "" if said == "ok" else f"{path} is damaged ({said})"


_SKEW = 60.0


def folder_checks(path: Path) -> Iterator[Check]:
    """Whether the collection in this folder is sound: lock, settings, small files, databases, indexes."""
    folder = DataFolder(path)
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
    stats = store.stats(SystemClock().now())
    held = f"{plural(stats.stored, 'page')} stored of {stats.known:,} known, {size(stats.bytes)}"
    yield fine(f"database{of_shard}", f"sound; format {store.format}; {held}")
    yield _index(folder, store.newest_seq(), f"index{of_shard}")


def _index(folder: DataFolder, newest: int, name: str) -> Check:
    from levada.follow.index import open_index
    from levada.store.opening import collection_folder

    settings = collection_folder(folder).settings()
    try:
        with closing(open_index(folder, settings.index.engine, lambda: settings)) as index:
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
    """Who holds the lock. It is tried as a shared lock for an instant, so nothing is written."""
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
        saved_settings(path.read_bytes())
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
