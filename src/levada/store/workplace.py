"""Workplaces: how a worker finds its collection, in a data folder or by the address of a PostgreSQL server."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from levada.core.errors import NotFound, StoreError, StoreLocked, UsageError
from levada.core.folder import DataFolder
from levada.core.settings import Settings, StoreSettings, saved_settings
from levada.store.base import Shard, Store, StoreLimits
from levada.store.bodies.opening import held_place, shared_bodies
from levada.store.opening import collection_name, make_collection_name, open_store, plan_of, sharded_store

if TYPE_CHECKING:
    from levada.store.bodies import Bodies
    from levada.store.sharded.plan import PlacementRecord, PlanFile, ShardPlace

log = logging.getLogger(__name__)


class WorkPlace(msgspec.Struct, frozen=True):
    """A collection's name and settings, and how to open its store for writing."""

    name: str
    settings: Settings
    open_store: Callable[[StoreLimits], Store]
    settings_now: Callable[[], Settings]  # they may have changed since
    home: str = ""  # the server by which machines without the folder find the collection
    is_shared: bool = False  # machines without the folder may work on it
    close: Callable[[], None] = lambda: None  # ends what `settings_now` keeps open


def folder_workplace(folder: DataFolder) -> WorkPlace:
    name = collection_name(folder)
    folder.must_exist()

    settings, engine = folder.settings(), folder.engine()

    def opened(limits: StoreLimits) -> Store:
        asked = StoreSettings(engine=engine)  # where it lies was decided when it was made
        return open_store(folder, asked, limits, options=settings.plugins.get(engine))

    return WorkPlace(name, settings, opened, folder.settings, home_of(folder), is_shared(folder))


def server_workplace(dsn: str, name: str | None = None) -> WorkPlace:
    """The collection of this name on this server, or its only one."""
    from levada.store.postgresql.shared_plan import SharedPlan

    chosen = _chosen(dsn, name)

    asking = SharedPlan(dsn, chosen)  # one session for all looks: workers look every second

    def settings_now(plan: SharedPlan = asking) -> Settings:
        content = plan.settings() or b""
        try:
            return saved_settings(content)
        except msgspec.MsgspecError as error:
            raise StoreError(
                f"the settings of the collection {chosen} cannot be read ({error}): start 'levada control' again, "
                "of the same version as its workers"
            ) from None

    def opened(limits: StoreLimits) -> Store:
        plan, now = SharedPlan(dsn, chosen, limits.away_seconds), settings_now()
        try:
            bodies = shared_bodies(now.store.bodies, now.bodies)
            return sharded_store(plan, limits, lambda place, own: _far_shard(place, own, plan.read(), bodies))
        except BaseException:
            plan.close()
            raise

    with closing(SharedPlan(dsn, chosen)) as plan:
        settings = settings_now(plan)
    return WorkPlace(chosen, settings, opened, settings_now, home=dsn, is_shared=True, close=asking.close)


def is_shared(folder: DataFolder) -> bool:
    """Whether machines without this folder may work on its collection."""
    return bool(home_of(folder))


def home_of(folder: DataFolder) -> str:
    """The server by which machines without this folder find its collection; "" if there is none."""
    file = plan_of(folder)
    if file is None:
        return ""
    with closing(file):
        return file.read().home


def share(folder: DataFolder, settings: Settings) -> None:
    """Let machines without this folder find the collection, if servers hold all of it."""
    file = plan_of(folder)
    if file is None:
        return
    with closing(file):
        if not file.read().home and all(file.read().shards[number].server for number in _owners(file.read())):
            from levada.core.folder import only_mover

            try:
                with only_mover(folder):
                    _publish(folder, file)
            except StoreLocked as error:
                log.warning("only workers with this folder can join: %s, then start control again", error)
        if file.read().home:
            from levada.store.postgresql.shared_plan import SharedPlan

            if (held := held_place(folder)) is not None:  # a setting may be missing where a file decides
                store = msgspec.structs.replace(settings.store, bodies=held.place)
                settings = msgspec.structs.replace(settings, store=store)
            with closing(SharedPlan(file.read().home, collection_name(folder))) as plan:
                plan.put_settings(msgspec.json.encode(settings))


def _publish(folder: DataFolder, file: PlanFile) -> None:
    """Write the row first and the file last: until the file names the server, the file decides."""
    from levada.store.postgresql.shared_plan import SharedPlan

    record = file.read()
    home = record.shards[min(_owners(record))].server
    record = msgspec.structs.replace(record, home=home)
    with closing(SharedPlan(home, make_collection_name(folder))) as plan:
        plan.publish(record)
    file.replace(record)


def _owners(record: PlacementRecord) -> set[int]:
    """The shards that hold pages, or will."""
    following = record.plan.following
    return {*record.plan.current.ranges.owners, *(following.ranges.owners if following is not None else ())}


def _chosen(dsn: str, name: str | None) -> str:
    from levada.store.postgresql.connection import Address
    from levada.store.postgresql.shared_plan import SCHEMA, shared_names

    names, place = shared_names(dsn), Address(dsn, SCHEMA).place
    if name is not None and name not in names:
        raise NotFound(f"{place} knows no collection {name[:50]!r}: it has {', '.join(names) or 'none'}")
    if not names:
        raise NotFound(f"nobody hands out pages by {place}: start 'levada control --data DIR' with it as store.servers")
    if name is None and len(names) > 1:
        raise UsageError(f"{place} has several collections: name one with --collection: {', '.join(names)}")
    return name or names[0]


def _far_shard(place: ShardPlace, limits: StoreLimits, record: PlacementRecord, bodies: Bodies | None) -> Shard:
    if place.server:
        from levada.store.postgresql import PostgresqlStore

        return PostgresqlStore(place.server, schema=place.schema, limits=limits, bodies=bodies)
    if limits.shard in _owners(record):
        raise StoreError(
            f"shard {limits.shard} lies in files of another machine: move it with 'levada shard apply --server DSN'"
        )
    from levada.store.sharded.absent import EmptyShard

    return EmptyShard(limits.shard)
