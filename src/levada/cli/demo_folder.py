"""Which folder may a demo replace, and what does it leave there?

Only its own: a file says that a demo made it, and of which web.
"""

from __future__ import annotations

import shutil

import msgspec
from msgspec.structs import replace

from levada.assemble.folder import DataFolder
from levada.assemble.warming import maps_of
from levada.errors import StoreError, UsageError
from levada.flow.settings import ClockSettings, Settings

__all__ = ["clear", "mark", "stop_hurrying"]

_MARK = "demo.json"
_LOOPBACK = "127.0.0.1:"
_REPLACED = ("levada.db*", "trends.db*", "orders.db*", "hooks.db*", "live.*", "placement.*")


def clear(folder: DataFolder) -> None:
    """The collection of an earlier demo goes; anything that is not one stays, and is an error."""
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
    """Say that this is a demo's, and of which web."""
    try:
        (folder.path / _MARK).write_bytes(msgspec.json.encode(settings.guard.allow))
    except OSError as error:
        raise StoreError(f"cannot write in {folder.path}: {error.strerror}") from None


def stop_hurrying(folder: DataFolder, now: float, wall: float) -> None:
    """Time goes on there from `now` as it does here: what changed an hour ago did so for whoever looks next."""
    folder.save_settings(replace(folder.settings(), clock=ClockSettings(speed=1.0, origin=now, started=wall)))


def _is_of_a_demo(folder: DataFolder) -> bool:
    """Did a demo crawl here last? Whoever crawled there since has other settings, and wants to keep it."""
    settings = folder.settings()
    try:
        marked = (folder.path / _MARK).read_bytes()
    except OSError:
        return _is_of_an_older_one(settings)
    return marked == msgspec.json.encode(settings.guard.allow) != b"[]"


def _is_of_an_older_one(settings: Settings) -> bool:
    """Demos left no mark once. A crawl of the served web has the clock and the address too, but hardly the rest."""
    allowed = settings.guard.allow
    at_home = len(allowed) == 1 and allowed[0].startswith(_LOOPBACK) and settings.clock.started > 0
    return at_home and settings.trends.live and settings.parse.children > 0
