"""Which stores stand behind a collection? One file, or several shards as its placement says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Protocol, cast

from msgspec.structs import replace

from levada.adapters.limits import StoreLimits
from levada.adapters.sqlite import SqliteStore
from levada.assemble.folder import DataFolder
from levada.assemble.sharing import collection_name, make_collection_name
from levada.errors import SettingsError, StoreError
from levada.ports import Census, Documents, Faults, Frontier, Notices, Sites
from levada.records import Happening

if TYPE_CHECKING:
    from levada.adapters.sharded.plan_file import PlanFile, PlanKeeper, ShardPlace
    from levada.adapters.sharded.shard import Shard
    from levada.flow.settings import StoreSettings

__all__ = [
    "CollectionStore",
    "collection_folder",
    "open_reading_store",
    "open_shard",
    "open_shard_reader",
    "open_store",
    "place_if_new",
    "places_for",
    "plan_of",
    "reachable_folders",
    "shard_folders",
    "shard_places",
    "sharded_store",
    "unreachable",
    "writing_plan",
]


class CollectionStore(Frontier, Sites, Documents, Census, Notices, Protocol):
    """A whole collection, however many shards it lies on."""

    @property
    def format(self) -> int: ...

    def close(self) -> None: ...

    def check(self) -> None: ...

    def forget_leases(self) -> None: ...

    def limit_waits(self, now: float, latest: float) -> int: ...

    def url_of(self, page_id: int) -> str | None: ...

    def urls_like(self, start: str, limit: int) -> list[str]: ...

    def newest_seq(self) -> int: ...

    def happenings(self, after: int, limit: int) -> list[Happening]: ...


def open_store(
    folder: DataFolder, settings: StoreSettings, limits: StoreLimits, faults: Faults | None = None
) -> CollectionStore:
    """To write; made as the settings say if there is nothing yet. For whoever holds the folder's lock."""
    place_if_new(folder, settings)
    plan = writing_plan(folder)
    if plan is None:
        if settings.servers:
            raise SettingsError(_not_on_servers(folder, settings))
        if settings.shards > 1:
            raise SettingsError(_other_shards(folder, settings, 1))
        return SqliteStore(folder.database, limits=limits, faults=faults)
    try:
        placed = plan.read().plan
        asked = (settings.shards, _asked(settings))
        if settings.shards > 1 and placed.used not in asked and placed.following is None:
            raise SettingsError(_other_shards(folder, settings, placed.used))
        return sharded_store(plan, limits, lambda place, own: open_shard(folder, place, own, faults=faults))
    except BaseException:
        plan.close()
        raise


def open_reading_store(folder: DataFolder) -> CollectionStore:
    """To be read, beside a running crawl or alone."""
    file = plan_of(folder)
    if file is None:
        return SqliteStore.open_reader(folder.database)
    from levada.adapters.sharded import ShardedStore

    def open_numbered(number: int) -> Shard:
        return _open_or_away(folder, file.read().shards[number], number)

    opened = [open_numbered(number) for number in range(len(file.read().shards))]
    return ShardedStore(opened, file, more=open_numbered)


def unreachable(store: CollectionStore) -> list[str]:
    """Sentences about shards whose servers are away, so that what is shown is only a part."""
    return list(getattr(store, "away", ()))


def reachable_folders(folder: DataFolder, store: CollectionStore) -> list[DataFolder]:
    """As `shard_folders`, without those of shards that are away."""
    away = getattr(store, "away_numbers", ())
    return [shard for number, shard in enumerate(shard_folders(folder)) if number not in away]


def _open_or_away(folder: DataFolder, place: ShardPlace, number: int) -> Shard:
    from levada.adapters.sharded.away import AwayShard

    try:
        return open_shard(folder, place, StoreLimits(), read_only=True)
    except StoreError as error:
        if not place.server:
            raise
        return cast("Shard", AwayShard(number, error))


def open_shard(
    folder: DataFolder,
    place: ShardPlace,
    limits: StoreLimits,
    *,
    faults: Faults | None = None,
    read_only: bool = False,
) -> Shard:
    """One shard by itself."""
    if place.server:
        from levada.adapters.postgresql import PostgresqlStore

        return PostgresqlStore(place.server, schema=place.schema, limits=limits, faults=faults, read_only=read_only)
    path = DataFolder(folder.path / place.folder).database
    return SqliteStore(path, limits=limits, faults=faults, read_only=read_only)


def open_shard_reader(shard: DataFolder) -> Shard:
    """For whoever follows the shard whose index and counts lie in this folder."""
    root = collection_folder(shard)
    if root is shard:
        return SqliteStore.open_reader(shard.database)
    place = next(each for each in shard_places(root) if (root.path / each.folder) == shard.path)
    return open_shard(root, place, StoreLimits(), read_only=True)


def plan_of(folder: DataFolder) -> PlanFile | None:
    """None where the collection is one file."""
    if not folder.placement.exists():
        return None
    from levada.adapters.sharded.plan_file import PlanFile

    return PlanFile(folder.placement)


def writing_plan(folder: DataFolder) -> PlanKeeper | None:
    """For whoever writes: a server's copy is the truth, if there is one."""
    file = plan_of(folder)
    if file is None or not file.read().home:
        return file
    from levada.adapters.postgresql.shared_plan import SharedPlan
    from levada.adapters.sharded.mirrored_plan import MirroredPlan

    return MirroredPlan(file, SharedPlan(file.read().home, collection_name(folder)))


def shard_places(folder: DataFolder) -> Sequence[ShardPlace]:
    """In their order; none where the collection is one file."""
    file = plan_of(folder)
    if file is None:
        return ()
    try:
        return file.read().shards
    finally:
        file.close()


def shard_folders(folder: DataFolder) -> list[DataFolder]:
    """Where the index and the counts of each shard lie; the data folder itself if the collection is one file."""
    return [DataFolder(folder.path / each.folder) for each in shard_places(folder)] or [folder]


def collection_folder(shard: DataFolder) -> DataFolder:
    """The data folder that this one is a shard of; itself if it is none."""
    root = DataFolder(shard.path.parent)
    if shard.placement.exists() or not root.placement.exists():
        return shard
    try:
        places = shard_places(root)
    except StoreError:  # something else of that name: the folder around this one is none of ours
        return shard
    return root if any(root.path / each.folder == shard.path for each in places) else shard


def sharded_store(
    file: PlanKeeper, limits: StoreLimits, open_place: Callable[[ShardPlace, StoreLimits], Shard]
) -> CollectionStore:
    """All shards of the plan as one store, to write; what an earlier process left undelivered is delivered."""
    from levada.adapters.sharded import ShardedStore

    plan = file.read().plan

    def open_numbered(number: int) -> Shard:
        own = replace(_shared_out(limits, plan.used, whole=plan.keeps_sites_whole), shard=number)
        return open_place(file.read().shards[number], own)

    opened: list[Shard] = []
    try:
        for number in range(plan.shards):
            opened += [open_numbered(number)]
        store = ShardedStore(opened, file, more=open_numbered)
        store.deliver()
    except BaseException:
        for shard in opened:
            shard.close()
        raise
    return store


def _shared_out(limits: StoreLimits, shards: int, *, whole: bool) -> StoreLimits:
    """Where a site's pages lie on every shard, each holds its share of them, and hands it out the more slowly."""
    if whole:
        return limits
    return replace(limits, max_pages_per_site=ceil(limits.max_pages_per_site / shards), delay=limits.delay * shards)


def place_if_new(folder: DataFolder, settings: StoreSettings) -> None:
    """Where a new collection is to lie, if it is not to be one file."""
    if folder.exists() or (settings.shards == 1 and not settings.servers):
        return
    from secrets import token_bytes

    from levada.adapters.sharded.plan import ShardPlan
    from levada.adapters.sharded.plan_file import PlanFile, new_record
    from levada.sharding.pages import page_placement

    shards = _asked(settings)
    plan = ShardPlan(page_placement(settings.key, shards, token_bytes(16)))
    name = make_collection_name(folder) if settings.servers else ""
    file = PlanFile(folder.placement)
    try:
        file.replace(new_record(plan, places_for(shards, settings.servers, name=name)))
    finally:
        file.close()


def places_for(
    shards: int, servers: Sequence[str] = (), first: int = 0, *, name: str = ""
) -> tuple[ShardPlace, ...]:
    """Where the shards from the `first` until before this number lie: on these servers in turn, or in folders.

    Schemas bear the collection's `name`, so that two collections in one database have no table in common.
    """
    from levada.adapters.sharded.plan_file import ShardPlace

    numbers = range(first, shards)
    if not servers:
        return tuple(ShardPlace(f"shard-{number}") for number in numbers)
    return tuple(
        ShardPlace(f"shard-{number}", servers[(number - first) % len(servers)], f"levada_{name[:8]}_{number}")
        for number in numbers
    )


def _asked(settings: StoreSettings) -> int:
    """How many shards a new collection has."""
    return max(settings.shards, len(settings.servers))


def _not_on_servers(folder: DataFolder, settings: StoreSettings) -> str:
    """Without their addresses, which may hold a password."""
    shards = f" --shards {settings.shards}" if settings.shards > 1 else ""
    return (
        f"the collection in {folder.path} lies in a file, and the settings ask for servers: "
        f"move it with 'levada shard apply --server ADDRESS{shards}', or leave store.servers out"
    )


def _other_shards(folder: DataFolder, settings: StoreSettings, there: int) -> str:
    asked = _asked(settings)
    shards = "1 shard" if there == 1 else f"{there} shards"
    return (
        f"the collection in {folder.path} has {shards}, and the settings ask for {asked}: "
        f"move it with 'levada shard apply --shards {asked}', or leave store.shards out"
    )
