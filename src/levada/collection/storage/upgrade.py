"""Upgrading a collection to the newest format: what there is to do, and doing it."""

from __future__ import annotations

import msgspec

from levada.core.folder import DataFolder
from levada.store.migrations.upgrading import OnProgress, StoreFormat, store_formats, upgrade_stores


class ShardUpgrade(msgspec.Struct, frozen=True):
    """The upgrade of one shard."""

    place: str
    engine: str
    todo: str  # `nothing`, `upgrade`, or `go on` after an interruption
    format: int
    newest: int
    pages: int
    bytes: int
    room: int  # the bytes that the backup and the upgrade need beside it
    backup: str  # where the store of the older format is kept


class Upgrade(msgspec.Struct, frozen=True):
    """The upgrade of a collection."""

    done: bool  # False for a dry run
    outdated: int
    room: int
    shards: tuple[ShardUpgrade, ...]


def planned_upgrade(folder: DataFolder, *, backup: bool = True) -> Upgrade:
    """What an upgrade would do. Nothing is written."""
    return _upgrade(store_formats(folder), {}, backup=backup, done=False)


def upgrade(
    folder: DataFolder, *, backup: bool = True, on_progress: OnProgress = lambda what, done, total: None
) -> Upgrade:
    """Upgrade every shard that is of an older format; the next call goes on if this one is cut short."""
    before = store_formats(folder)
    upgraded = upgrade_stores(folder, backup=backup, on_progress=on_progress)
    return _upgrade(before, {state.place: state.backup for state in upgraded}, backup=backup, done=True)


def _upgrade(states: list[StoreFormat], kept: dict[str, str], *, backup: bool, done: bool) -> Upgrade:
    shards = tuple(
        ShardUpgrade(
            state.place,
            state.engine,
            _todo(state),
            state.format,
            state.newest,
            state.pages,
            state.bytes,
            state.room(backup=backup),
            kept.get(state.place, ""),
        )
        for state in states
    )
    return Upgrade(done, sum(state.outdated for state in states), sum(shard.room for shard in shards), shards)


def _todo(state: StoreFormat) -> str:
    if not state.outdated:
        return "nothing"
    return "go on" if state.interrupted else "upgrade"
