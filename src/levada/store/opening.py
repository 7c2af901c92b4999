"""Opening the store of a data folder: one SQLite file, or several shards according to its placement.

The folder's file `collection` holds a random name, made once, which queues, messages and the schemas on servers
carry. A lease of one collection means nothing in another, so workers read the name first and ignore messages with
another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec.structs import replace

from levada.core.errors import NotFound, SettingsError, StoreAway, StoreError, StoreOutdated
from levada.core.folder import DataFolder
from levada.core.plugins import is_builtin, load, translating
from levada.core.protocols import Faults
from levada.core.site_rules.pace import SitePaces
from levada.store.base import Shard, Store, StoreLimits
from levada.store.bodies.opening import reading_bodies, writing_bodies
from levada.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from levada.core.settings import Settings, StoreSettings
    from levada.store.bodies import Bodies
    from levada.store.sharded.plan import PlanFile, PlanStore, ShardPlace

T = TypeVar("T")

_DAY = 86_400.0
NAME = re.compile(r"[0-9a-f]{16}")


def store_limits(settings: Settings) -> StoreLimits:
    """The store limits that the settings imply. A lease takes no more pages of a site than its delay and budget
    allow."""
    per_hour = settings.budget.per_site_per_hour
    return StoreLimits(
        keep_versions=settings.store.keep_versions,
        keep_seconds=settings.store.keep_days * _DAY,
        thin=settings.store.thin,
        max_pages_per_site=settings.crawl.max_pages_per_site,
        new_share=settings.store.new_share,
        delay=max(settings.politeness.delay, 3600.0 / per_hour if per_hour else 0.0),
        paces=SitePaces.of(settings),
        statement_seconds=settings.store.statement_seconds,
        away_seconds=settings.store.away_seconds,
    )


def open_store(
    folder: DataFolder,
    settings: StoreSettings,
    limits: StoreLimits,
    faults: Faults | None = None,
    options: Mapping[str, Any] | None = None,
) -> Store:
    """Open the store for writing; create it as the settings say if there is none. The caller holds the folder's lock.

    `options` are those of a plug-in. Which engine a folder has stays in its file `engine`.
    """
    there, is_plugin = folder.engine(), not is_builtin("levada.stores", settings.engine)
    if there != settings.engine and folder.exists() and (is_plugin or not is_builtin("levada.stores", there)):
        raise SettingsError(
            f"the collection in {folder.path} is kept by {there}, and store.engine is {settings.engine}: "
            "name another --data, or change the setting"
        )
    if is_plugin and settings.bodies:
        raise SettingsError("store.bodies needs the built-in stores: leave it out with a plug-in as store.engine")
    if is_plugin:
        store = _plugin_store(folder, settings.engine, options, limits=limits, faults=faults)
        folder.engine_file.write_text(settings.engine, encoding="utf-8")
        return store
    place_if_new(folder, settings)
    plan = writing_plan(folder, limits.away_seconds)
    if plan is None:
        if settings.servers:
            raise SettingsError(_not_on_servers(folder, settings))
        if settings.shards > 1:
            raise SettingsError(_other_shards(folder, settings, 1))
        own = writing_bodies(folder, settings.bodies)
        return opened_upgraded(folder, lambda: SqliteStore(folder.database, limits=limits, faults=faults, bodies=own))
    try:
        placed = plan.read().plan
        asked = (settings.shards, _wanted_shards(settings))
        if settings.shards > 1 and placed.used not in asked and placed.following is None:
            raise SettingsError(_other_shards(folder, settings, placed.used))
        bodies = writing_bodies(folder, settings.bodies)

        def open_place(place: ShardPlace, own: StoreLimits) -> Shard:
            return open_shard(folder, place, own, faults=faults, bodies=bodies)

        return opened_upgraded(folder, lambda: sharded_store(plan, limits, open_place))
    except BaseException:
        plan.close()
        raise


def opened_upgraded(folder: DataFolder, open_it: Callable[[], T]) -> T:
    """What `open_it` opens; if the store is of an older format, after an upgrade."""
    try:
        return open_it()
    except StoreOutdated as error:
        from levada.store.migrations.upgrading import upgrade_automatically

        upgrade_automatically(folder, error)
    return open_it()


def open_reading_store(folder: DataFolder, seconds: float = StoreLimits().statement_seconds) -> Store:
    """Open the store for reading, beside a running crawl or alone; a server may take so long for an answer."""
    if not is_builtin("levada.stores", engine := folder.engine()):
        return _plugin_store(folder, engine, folder.settings().plugins.get(engine), read_only=True)
    file = plan_of(folder)
    if file is None:
        bodies = reading_bodies(folder)
        return opened_upgraded(folder, lambda: SqliteStore.open_reader(folder.database, bodies=bodies))
    from levada.store.sharded import ShardedStore
    from levada.store.sharded.remote import answers, remote_shards

    bodies = reading_bodies(folder)

    def open_place(place: ShardPlace, limits: StoreLimits) -> Shard:
        try:
            return open_shard(folder, place, limits, read_only=True, bodies=bodies)
        except StoreError as error:
            if not place.server or isinstance(error, StoreOutdated):
                raise
            raise StoreAway(str(error)) from error

    def open_numbered(number: int) -> Shard:
        return place_shard(file.read().shards[number], StoreLimits(shard=number, statement_seconds=seconds), open_place)

    def open_all() -> Store:
        opened: list[Shard] = []
        try:
            for number in range(len(file.read().shards)):
                opened += [open_numbered(number)]
            with suppress(StoreAway):  # what does not need the shards is still answered
                servers = {number: opened[number] for number in remote_shards(opened)}
                answers(servers, lambda _number, _shard: None)
        except BaseException:
            for shard in opened:
                shard.close()
            raise
        return ShardedStore(opened, file, more=open_numbered)

    return opened_upgraded(folder, open_all)


def place_shard(
    place: ShardPlace,
    limits: StoreLimits,
    open_place: Callable[[ShardPlace, StoreLimits], Shard],
    seconds: float | None = None,
) -> Shard:
    """A shard in a file, opened; one on a server, which is opened when it is asked for the first time."""
    if not place.server:
        return open_place(place, limits)
    from levada.store.postgresql.connection import Address
    from levada.store.sharded.remote import ANSWER_SECONDS, RemoteShard

    where = Address(place.server, place.schema).place
    remote = RemoteShard(
        limits.shard, where, lambda own: open_place(place, own), limits, seconds=seconds or ANSWER_SECONDS
    )
    return cast("Shard", remote)


def _plugin_store(folder: DataFolder, engine: str, options: Mapping[str, Any] | None, **given: Any) -> Store:
    made: Store = load("levada.stores", engine, options, path=folder.path / f"store-{engine}", **given)
    return translating("levada.stores", engine, made)


def unreachable(store: Store) -> list[str]:
    """Why shards cannot be reached, one sentence each: what is shown is only a part."""
    return [str(away) for away in store.away.values()]


def newest_of_shards(store: Store) -> dict[int, int]:
    """The newest change of each shard that answers."""
    from levada.store.sharded.remote import answers

    shards = dict(enumerate(cast("Sequence[Shard]", store.shards)))
    with suppress(StoreAway):
        return answers(shards, lambda _, shard: shard.newest_seq())
    return {}


def reachable_folders(folder: DataFolder, store: Store) -> list[DataFolder]:
    """The `shard_folders` of the shards that can be reached."""
    return [shard for number, shard in enumerate(shard_folders(folder)) if number not in store.away]


def open_shard(
    folder: DataFolder,
    place: ShardPlace,
    limits: StoreLimits,
    *,
    faults: Faults | None = None,
    read_only: bool = False,
    bodies: Bodies | None = None,
) -> Shard:
    """Open one shard by itself, or with the bodies that it shares with the others."""
    given: dict[str, Any] = {"limits": limits, "faults": faults, "read_only": read_only}
    given["bodies"] = bodies or reading_bodies(folder)
    if place.server:
        from levada.store.postgresql import PostgresqlStore

        return PostgresqlStore(place.server, schema=place.schema, **given)
    return SqliteStore(DataFolder(folder.path / place.folder).database, **given)


def open_shard_reader(shard: DataFolder) -> Shard:
    """The store that the index and the term counts in this folder follow."""
    root = collection_folder(shard)
    if not is_builtin("levada.stores", root.engine()):
        return cast("Shard", open_reading_store(root))
    if root is shard:
        return SqliteStore.open_reader(shard.database, bodies=reading_bodies(root))
    place = next(each for each in shard_places(root) if (root.path / each.folder) == shard.path)
    return open_shard(root, place, StoreLimits(), read_only=True)


def plan_of(folder: DataFolder) -> PlanFile | None:
    """The plan file of a sharded collection; None where the collection is one file."""
    if not folder.placement.exists():
        return None
    from levada.store.sharded.plan import PlanFile

    return PlanFile(folder.placement)


def writing_plan(folder: DataFolder, away_seconds: float = 0.0) -> PlanStore | None:
    """The plan for writers. If a server holds a copy, that copy decides; it is waited for so long."""
    file = plan_of(folder)
    if file is None or not file.read().home:
        return file
    from levada.store.postgresql.shared_plan import SharedPlan
    from levada.store.sharded.plan import MirroredPlan

    return MirroredPlan(file, SharedPlan(file.read().home, collection_name(folder), away_seconds))


def shard_places(folder: DataFolder) -> Sequence[ShardPlace]:
    """The places of the shards, in order; empty where the collection is one file."""
    file = plan_of(folder)
    if file is None:
        return ()
    with closing(file):
        return file.read().shards


def shard_folders(folder: DataFolder) -> list[DataFolder]:
    """The folders with the index and term counts of each shard; the data folder itself if the collection is one
    file."""
    return [DataFolder(folder.path / each.folder) for each in shard_places(folder)] or [folder]


def collection_folder(shard: DataFolder) -> DataFolder:
    """The data folder that this folder is a shard of; the folder itself if it is none."""
    root = DataFolder(shard.path.parent)
    if shard.placement.exists() or not root.placement.exists():
        return shard
    try:
        places = shard_places(root)
    except StoreError:  # another file of that name: the parent folder is not a collection
        return shard
    return root if any(root.path / each.folder == shard.path for each in places) else shard


def sharded_store(
    file: PlanStore, limits: StoreLimits, open_place: Callable[[ShardPlace, StoreLimits], Shard]
) -> Store:
    """Open all shards of the plan as one store for writing, and deliver what an earlier process left
    undelivered."""
    from levada.store.sharded import ShardedStore
    from levada.store.sharded.remote import WRITE_SECONDS, remote_shards
    from levada.store.sharded.store import limits_of_shard

    plan = file.read().plan
    limits = limits_of_shard(limits, plan)

    def open_numbered(number: int) -> Shard:
        place, own = file.read().shards[number], replace(limits, shard=number)
        if plan.shards == 1:  # while it is away nothing else could be done: it waits by itself
            return open_place(place, own)
        return place_shard(place, replace(own, away_seconds=0.0), open_place, WRITE_SECONDS)

    opened: list[Shard] = []
    try:
        for number in range(plan.shards):
            opened += [open_numbered(number)]
        # All at the same time. Who writes begins only when every shard answers.
        for answer in [shard.begin(lambda _: None, bounded=False) for shard in remote_shards(opened).values()]:
            answer()
        store = ShardedStore(opened, file, more=open_numbered)
        store.deliver()
    except BaseException:
        for shard in opened:
            shard.close()
        raise
    return store


def place_if_new(folder: DataFolder, settings: StoreSettings) -> None:
    """Write the placement of a new collection, unless it is one file."""
    if folder.exists() or (settings.shards == 1 and not settings.servers):
        return
    from secrets import token_bytes

    from levada.sharding.page_keys import page_placement
    from levada.store.sharded.plan import PlanFile, ShardPlan, new_record

    shards = _wanted_shards(settings)
    plan = ShardPlan(page_placement(settings.key, shards, token_bytes(16)))
    name = make_collection_name(folder) if settings.servers else ""
    with closing(PlanFile(folder.placement)) as file:
        file.replace(new_record(plan, places_for(shards, settings.servers, name=name)))


def places_for(shards: int, servers: Sequence[str] = (), first: int = 0, *, name: str = "") -> tuple[ShardPlace, ...]:
    """The places of the shards from `first` until before `shards`: on these servers in turn, or in folders. Schemas
    carry the collection's `name`, so that two collections in one database share no table."""
    from levada.store.sharded.plan import ShardPlace

    numbers = range(first, shards)
    if not servers:
        return tuple(ShardPlace(f"shard-{number}") for number in numbers)
    return tuple(
        ShardPlace(f"shard-{number}", servers[(number - first) % len(servers)], f"levada_{name[:8]}_{number}")
        for number in numbers
    )


def make_collection_name(folder: DataFolder) -> str:
    """The name of the collection, made now if there is none. Concurrent callers all get the same one."""
    with suppress(NotFound):
        return collection_name(folder)
    import secrets  # imported here: a collection is named once in its life

    path = folder.path / "collection"
    name = secrets.token_hex(8)
    fresh = path.with_suffix(f".{name}")
    try:
        fresh.write_text(name, encoding="ascii")
        with suppress(FileExistsError):
            os.link(fresh, path)
        fresh.unlink()
    except OSError as error:
        raise StoreError(f"cannot write in {folder.path}: {error.strerror}") from None
    return collection_name(folder)


def collection_name(folder: DataFolder) -> str:
    path = folder.path / "collection"
    try:
        name = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        raise NotFound(
            f"nobody hands out pages of {folder.path}: start 'levada control --data {folder.path}'"
        ) from None
    except (OSError, UnicodeError) as error:
        raise StoreError(f"cannot read {path}: {error}") from None
    if not NAME.fullmatch(name):
        raise StoreError(f"{path} does not hold a collection's name: delete it, and start 'levada control' again")
    return name


def _wanted_shards(settings: StoreSettings) -> int:
    """The number of shards of a new collection."""
    return max(settings.shards, len(settings.servers))


def _not_on_servers(folder: DataFolder, settings: StoreSettings) -> str:
    """The message, without the servers' addresses, which may hold a password."""
    shards = f" --shards {settings.shards}" if settings.shards > 1 else ""
    return (
        f"the collection in {folder.path} lies in a file, and the settings ask for servers: "
        f"move it with 'levada shard apply --server ADDRESS{shards}', or leave store.servers out"
    )


def _other_shards(folder: DataFolder, settings: StoreSettings, there: int) -> str:
    asked = _wanted_shards(settings)
    shards = "1 shard" if there == 1 else f"{there} shards"
    return (
        f"the collection in {folder.path} has {shards}, and the settings ask for {asked}: "
        f"move it with 'levada shard apply --shards {asked}', or leave store.shards out"
    )
