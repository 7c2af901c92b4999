"""Data folder of a demo. Only a demo's own collection is replaced: a file in it says of which web it is."""

from __future__ import annotations

import shutil

import msgspec
from msgspec.structs import replace

from levada.collection.warm_map import maps_of
from levada.core.errors import StoreError, UsageError
from levada.core.folder import DataFolder
from levada.core.settings import ClockSettings, Settings

_MARK = "demo.json"
_LOOPBACK = "127.0.0.1:"
_REPLACED = ("levada.db*", "trends.db*", "orders.db*", "hooks.db*", "live.*", "placement.*")


def clear(folder: DataFolder) -> None:
    """Delete the collection of an earlier demo; `UsageError` if the folder holds anything else."""
    folder.must_be_folder()
    if not folder.path.exists() or not any(folder.path.iterdir()):
        return
    if not _is_of_a_demo(folder):
        advice = "name another folder with --data"
        if not folder.exists():
            raise UsageError(f"{folder.path} holds something that is no collection: {advice}")
        raise UsageError(f"{folder.path} holds a collection that no demo made: {advice}, or delete it first")
    with folder.locked():
        for shard in folder.path.glob("shard-*"):
            shutil.rmtree(shard, ignore_errors=True)
        shutil.rmtree(folder.index, ignore_errors=True)
        shutil.rmtree(maps_of(folder), ignore_errors=True)
        for name in _REPLACED:
            for part in folder.path.glob(name):
                part.unlink()


def mark(folder: DataFolder, settings: Settings) -> None:
    """Note that a demo made this collection, and of which web."""
    try:
        (folder.path / _MARK).write_bytes(msgspec.json.encode(settings.guard.allow))
    except OSError as error:
        raise StoreError(f"cannot write in {folder.path}: {error.strerror}") from None


def stop_hurrying(folder: DataFolder, now: float, wall: float) -> None:
    """Let the collection's clock go on from `now` at normal speed, so that later commands see the same ages."""
    folder.save_settings(replace(folder.settings(), clock=ClockSettings(speed=1.0, origin=now, started=wall)))


def _is_of_a_demo(folder: DataFolder) -> bool:
    """Whether a demo crawled here last: a later crawl has other settings, and its pages are kept."""
    settings = folder.settings()
    try:
        marked = (folder.path / _MARK).read_bytes()
    except OSError:
        return _is_of_an_older_one(folder, settings)
    return marked == msgspec.json.encode(settings.guard.allow) != b"[]"


def _is_of_an_older_one(folder: DataFolder, settings: Settings) -> bool:
    """Whether these are the settings of a demo of an earlier version, which left no mark and kept all settings."""
    if any(each.by for each in folder.kept_settings().values()):
        return False
    allowed = settings.guard.allow
    at_home = len(allowed) == 1 and allowed[0].startswith(_LOOPBACK) and settings.clock.started > 0
    return at_home and settings.trends.live and settings.parse.children > 0
