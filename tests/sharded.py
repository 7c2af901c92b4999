"""Collections over several small stores, and what is stored where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from levada.core.folder import DataFolder
from levada.core.protocols import Faults
from levada.sharding.page_keys import page_placement
from levada.store.base import Shard, StoreLimits
from levada.store.bodies import Bodies
from levada.store.opening import open_shard
from levada.store.sharded import ShardedStore, ShardPlan
from levada.store.sharded.plan import ShardPlace
from levada.store.sqlite import SqliteStore
from tests.in_memory import FixedPlan

__all__ = ["everything", "open_places", "open_shards", "places", "sharded_sqlite", "urls_by_shard"]


def open_shards(
    folder: Path,
    limits: StoreLimits,
    count: int,
    *,
    first: int = 0,
    faults: Faults | None = None,
    bodies: Bodies | None = None,
) -> list[SqliteStore]:
    return [
        SqliteStore(folder / f"{number}.db", limits=replace(limits, shard=number), faults=faults, bodies=bodies)
        for number in range(first, first + count)
    ]


def places(folder: Path, count: int) -> tuple[ShardPlace, ...]:
    """Files in the folder; or schemas on the servers that a file `servers` in it names, each schema its own."""
    named = folder / "servers"
    if not named.exists():
        return tuple(ShardPlace(f"shard-{number}") for number in range(count))
    servers = named.read_text().split()
    own = folder.name.replace("-", "_")
    return tuple(
        ShardPlace(f"shard-{number}", servers[number % len(servers)], f"{own}_{number}") for number in range(count)
    )


def open_places(
    folder: Path, shards: Sequence[ShardPlace], limits: StoreLimits, faults: Faults | None = None
) -> list[Shard]:
    data = DataFolder(folder)
    return [
        open_shard(data, place, replace(limits, shard=number), faults=faults) for number, place in enumerate(shards)
    ]


def sharded_sqlite(
    folder: Path, limits: StoreLimits, count: int, key: str = "site", bodies: Bodies | None = None
) -> ShardedStore:
    plan = ShardPlan(page_placement(key, count))
    return ShardedStore(open_shards(folder, limits, count, bodies=bodies), FixedPlan(plan))


def urls_by_shard(shards: Sequence[Shard]) -> list[list[str]]:
    return [[url for _, url in shard.urls_after(0, 1_000_000)] for shard in shards]


def everything(shards: Iterable[Shard]) -> dict[str, tuple[object, ...]]:
    """Each page with its visits and versions, whichever shard it is on; fails if one is held twice."""
    found: dict[str, tuple[object, ...]] = {}
    for shard in shards:
        for _, url in shard.urls_after(0, 1_000_000):
            assert url not in found, f"{url} is held twice"
            versions = [(each.version, shard.document(url, each.version)) for each in shard.versions(url)]
            found[url] = (shard.page(url), versions)
    return found
