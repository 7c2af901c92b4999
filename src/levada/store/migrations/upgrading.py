"""Upgrading the store of a data folder: every shard, under the folder's lock, after a backup of each file.

A folder of up to `AUTOMATIC_BYTES` is upgraded by the first command that opens it. Larger ones, and collections on
servers, wait for `levada upgrade`: that takes a while there, and other machines must stop first.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from levada.core.errors import StoreError, StoreLocked, StoreOutdated
from levada.core.folder import DataFolder
from levada.core.plugins import is_builtin
from levada.core.protocols import Faults
from levada.core.words import plural, size
from levada.store.base import StoreLimits
from levada.store.faults import NoFaults
from levada.store.migrations.steps import BATCH, Engine, migrate, postgresql_engine, sqlite_engine
from levada.store.sharded.plan import PlanFile, ShardPlace
from levada.store.sql.base import UNDER_WAY, Database
from levada.store.sqlite.copying import copy_database, database_bytes, must_have_room
from levada.store.sqlite.database import SqliteDatabase

log = logging.getLogger(__name__)

AUTOMATIC_BYTES = 1 << 30
_UNHURRIED = StoreLimits(statement_seconds=7 * 86_400.0)  # an index of a large table takes hours
_GROWTH = 0.25  # of a store, while its rows are filled
# Sessions of format 3 were all called "levada"; later ones carry the name of their schema.
_OLD_SESSION = "levada"
_OTHERS = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()
    AND application_name IN (%s, %s)"""
_PAGES = "SELECT coalesce(sum(n), 0) FROM counters WHERE name LIKE 'state.%'"


class StoreFormat(msgspec.Struct, frozen=True):
    """The format of one shard."""

    place: str
    engine: str
    format: int
    newest: int
    pages: int
    bytes: int
    interrupted: bool  # an upgrade began, and goes on
    backup: str = ""  # where the older one is kept, after an upgrade

    @property
    def outdated(self) -> bool:
        return self.interrupted or self.format < self.newest

    def room(self, *, backup: bool) -> int:
        """The bytes that its upgrade needs beside it; on a server, nobody here can tell."""
        if not self.outdated or self.interrupted or self.engine != "sqlite":
            return 0
        return round(self.bytes * (backup + _GROWTH))


OnProgress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much: bytes of a backup, pages of a migration."""


def store_formats(folder: DataFolder) -> list[StoreFormat]:
    """The formats of the shards, in order; none for a plug-in, which looks after its own. Nothing is written."""
    return [shard.state() for shard in _shards(folder)]


def upgrade_stores(
    folder: DataFolder,
    *,
    backup: bool = True,
    on_progress: OnProgress = lambda what, done, total: None,
    faults: Faults | None = None,
    batch: int = BATCH,
) -> list[StoreFormat]:
    """Upgrade every shard that is outdated; returns those as they were, with the place of their backups.

    If it is cut short, the next call goes on. Two callers at a time take turns.
    """
    with ExitStack() as held:
        held.enter_context(_one_at_a_time(folder))
        if not folder.is_held:
            try:
                held.enter_context(folder.locked())
            except StoreLocked as error:
                raise StoreLocked(f"{folder.path} cannot be upgraded while it is written: {error}") from None
        outdated = [(shard, state) for shard in _shards(folder) if (state := shard.state()).outdated]
        needed = sum(state.room(backup=backup) for _, state in outdated)
        if needed:
            otherwise = f"make room{', or add --no-backup' * backup}; nothing was changed"
            must_have_room(folder.path, needed, "the upgrade", otherwise)
        upgraded, faults = [], faults or NoFaults()
        for shard, state in outdated:
            if backup and not state.interrupted:
                kept = shard.back_up(state, partial(on_progress, f"backing up {state.place}"), faults)
                state = msgspec.structs.replace(state, backup=str(kept))
            shard.migrate(state, partial(on_progress, f"upgrading {state.place}"), faults, batch)
            upgraded.append(state)
        return upgraded


def upgrade_automatically(folder: DataFolder, error: StoreOutdated) -> None:
    """Upgrade a folder that a command has opened, or raise what to do first."""
    formats = [each for each in store_formats(folder) if each.outdated]
    command = f"levada upgrade --data {folder.path}"
    if any(each.engine != "sqlite" for each in formats):
        raise StoreOutdated(
            f"{formats[0].place} has format {formats[0].format}, ours is {formats[0].newest}: stop what else works on "
            f"it, then run '{command}'"
        ) from error
    total = sum(each.bytes for each in formats)
    if total > AUTOMATIC_BYTES:
        raise StoreOutdated(
            f"{folder.path} has format {formats[0].format}, ours is {formats[0].newest}, and to upgrade {size(total)} "
            f"takes a while: run '{command}'"
        ) from error
    if not os.access(folder.path, os.W_OK):
        raise StoreOutdated(
            f"{folder.path} has an older format and cannot be written: run '{command}' as a user who may, or copy it"
        ) from error
    upgraded = upgrade_stores(folder)
    if upgraded:
        kept = ", ".join(each.backup for each in upgraded if each.backup)
        log.warning(
            "%s was upgraded from format %s to %s%s",
            folder.path,
            upgraded[0].format,
            upgraded[0].newest,
            f"; the older one is kept in {kept}: delete it when all is well" if kept else "",
        )


@contextmanager
def _one_at_a_time(folder: DataFolder) -> Iterator[None]:
    """Wait for another process that upgrades the same folder."""
    path = folder.path / "upgrade.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(f"cannot write in {folder.path}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _shards(folder: DataFolder) -> Sequence[_Shard]:
    folder.must_exist()
    if not is_builtin("levada.stores", folder.engine()):
        return ()
    if not folder.placement.exists():
        return (_SqliteShard(folder.database),)
    with closing(PlanFile(folder.placement)) as file:
        places = file.read().shards
    return [
        _PostgresqlShard(place, folder.path / place.folder)
        if place.server
        else _SqliteShard(DataFolder(folder.path / place.folder).database)
        for place in places
    ]


class _Shard:
    def __init__(self, place: str, engine: Engine) -> None:
        self.place = place
        self.engine = engine

    def state(self) -> StoreFormat:
        raise NotImplementedError

    def open(self, faults: Faults) -> Database[Any]:
        """The database, of whatever format, for migrating."""
        raise NotImplementedError

    def back_up(self, state: StoreFormat, told: Callable[[int, int], None], faults: Faults) -> Path:
        """Copy it as it is; returns where to."""
        raise NotImplementedError

    def migrate(self, state: StoreFormat, told: Callable[[int, int], None], faults: Faults, batch: int) -> None:
        done = 0

        def on_batch(rows: int) -> None:
            nonlocal done
            done = min(done + rows, state.pages)
            told(done, state.pages)

        with closing(self.open(faults)) as database:
            migrate(database, self.engine, on_batch=on_batch, batch=batch)
        told(state.pages, state.pages)

    def _state(self, version: int, pages: int, bytes: int) -> StoreFormat:
        interrupted = version > UNDER_WAY
        if interrupted:
            version = next(step.old for step in self.engine.steps if step.new == version - UNDER_WAY)
        newest = self.engine.steps[-1].new
        return StoreFormat(self.place, self.engine.name, version, newest, pages, bytes, interrupted)


class _SqliteShard(_Shard):
    def __init__(self, path: Path) -> None:
        super().__init__(str(path), sqlite_engine())
        self._path = path

    def state(self) -> StoreFormat:
        newest = self.engine.steps[-1].new
        if not self._path.exists():  # a shard that was never written
            return self._state(newest, 0, 0)
        with closing(SqliteDatabase(self._path, StoreLimits(), NoFaults(), read_only=True, older=True)) as database:
            if not database.rows("SELECT 1 FROM sqlite_master LIMIT 1"):
                return self._state(newest, 0, 0)
            ((pages,),) = database.rows(_PAGES)
            return self._state(database.format(), pages, database_bytes(self._path))

    def open(self, faults: Faults) -> Database[Any]:
        return SqliteDatabase(self._path, StoreLimits(), faults, older=True)

    def back_up(self, state: StoreFormat, told: Callable[[int, int], None], faults: Faults) -> Path:
        kept = self._path.with_name(f"{self._path.name}.format-{state.format}.backup")
        copy_database(self._path, kept, on_progress=told, faults=faults, operation="keep")
        return kept


class _PostgresqlShard(_Shard):
    def __init__(self, place: ShardPlace, folder: Path) -> None:
        from levada.store.postgresql.connection import Address

        self._address = Address(place.server, place.schema)
        super().__init__(self._address.place, postgresql_engine())
        self._folder = folder

    def state(self) -> StoreFormat:
        with closing(self._opened(NoFaults(), read_only=True)) as database:
            ((pages,),) = database.rows(_PAGES.replace("%", "%%"))
            ((bytes,),) = database.rows(self.engine.sql.dialect.written(f"SELECT {self.engine.sql.dialect.size}"))
            return self._state(database.format(), pages, bytes)

    def open(self, faults: Faults) -> Database[Any]:
        database = self._opened(faults)
        ((others,),) = database.rows(_OTHERS, (_OLD_SESSION, self._address.session_name))
        if others:
            database.close()
            raise StoreLocked(
                f"{self.place} is used by {plural(others, 'other session')} of Levada: stop crawls, workers and "
                "servers that use this database, then run the same command again"
            )
        return database

    def back_up(self, state: StoreFormat, told: Callable[[int, int], None], faults: Faults) -> Path:
        from levada.store.postgresql.dump import dump_schema

        kept = self._folder / f"postgresql.format-{state.format}.backup"
        kept.parent.mkdir(parents=True, exist_ok=True)
        dump_schema(self._address, kept, faults=faults, operation="keep")
        told(state.bytes, state.bytes)
        return kept

    def _opened(self, faults: Faults, *, read_only: bool = False) -> Database[Any]:
        from levada.store.postgresql.database import PostgresqlDatabase

        return PostgresqlDatabase(self._address, _UNHURRIED, faults, read_only=read_only, older=True)
