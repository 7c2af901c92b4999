"""A collection on other shards: beside a running crawl or alone; the same call resumes one that was cut short."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from secrets import token_bytes

import msgspec
from msgspec.structs import replace

from levada.adapters.limits import StoreLimits
from levada.adapters.sharded.plan import ShardPlan
from levada.adapters.sharded.plan_file import PlacementRecord, PlanFile, ShardPlace, new_record
from levada.adapters.sharded.reshard_run import begin_move, finish_move, move_pages, turn_back
from levada.adapters.sharded.resharding import Moved
from levada.adapters.sharded.shard import Shard
from levada.assemble.folder import DataFolder
from levada.assemble.moving_lock import only_mover
from levada.assemble.sharing import make_collection_name
from levada.assemble.stores import open_shard, places_for, writing_plan
from levada.errors import StoreLocked
from levada.ports import Faults
from levada.sharding.pages import KEYS, page_placement
from levada.sharding.placement import Placement, Ranges

__all__ = ["Resharded", "ShardWish", "apply_shards", "key_name"]

_PAUSE = 0.2  # before pages that somebody visits are asked for again


class ShardWish(msgspec.Struct, frozen=True):
    """What is to be; None: as it is, or comes to be by the move under way."""

    shards: int | None = None
    key: str | None = None
    servers: tuple[str, ...] = ()
    placement: Placement | None = None  # instead of a key by name and a number, its shards numbered from 0
    back: bool = False  # nothing else: the move under way is taken back


class Resharded(msgspec.Struct, frozen=True):
    key: str
    shards: int
    pages: tuple[int, ...]  # on each shard
    looked_at: int
    moved: int
    seconds: float


def apply_shards(
    folder: DataFolder,
    wish: ShardWish,
    *,
    on_progress: Callable[[Moved, int], None] = lambda moved, known: None,
    faults: Faults | None = None,
) -> Resharded:
    """`on_progress` is told how far it is, and of how many pages; without a wish, what was begun is finished."""
    folder.must_exist()
    began = time.monotonic()
    with only_mover(folder), ExitStack() as opened:
        _place_first(folder)
        file = writing_plan(folder) or PlanFile(folder.placement)
        opened.callback(file.close)
        record = file.read()
        wanted, places = _wanted(record, wish, lambda: make_collection_name(folder))
        named = places if record.plan.following is None else record.shards  # no more than a move under way needs
        # Before the plan names them: a shard that cannot be opened would keep everybody from the collection.
        shards = [_opened(folder, place, number, faults, opened) for number, place in enumerate(named)]
        record = turn_back(file) if wish.back else begin_move(file, wanted, places)
        known = sum(shard.standing(0.0).known for shard in shards)
        last = [Moved(0, 0)]

        def told(moved: Moved) -> None:
            last[0] = moved
            on_progress(moved, known)

        _forget_dead_leases(folder, record, shards)
        move_pages(file, shards, wait=lambda: _wait(folder, record, shards), faults=faults, on_progress=told)
        done = finish_move(file)
        pages = tuple(shard.standing(0.0).known for shard in shards[: done.plan.shards])
    seconds = time.monotonic() - began
    used = len(set(done.plan.current.ranges.owners))
    return Resharded(key_name(done.plan.current), used, pages, last[0].looked_at, last[0].moved, seconds)


def key_name(placement: Placement) -> str:
    """What the key is called on the command line."""
    fields = placement.key.fields
    return next((name for name, (first, _) in KEYS.items() if first == fields[0]), ", ".join(fields))


def _place_first(folder: DataFolder) -> None:
    """A collection in one file becomes one shard; a crawl that runs knows nothing of that, so it must end first."""
    if folder.placement.exists():
        return
    try:
        with folder.locked():
            file = PlanFile(folder.placement)
            file.replace(new_record(ShardPlan(page_placement("site", 1, token_bytes(16))), (ShardPlace("."),)))
            file.close()
    except StoreLocked:
        raise StoreLocked(
            f"a crawl is running in {folder.path}, and its collection is one file: stop it, run this command, and "
            "start it again; it may run while the pages move"
        ) from None


def _wanted(
    record: PlacementRecord, wish: ShardWish, name: Callable[[], str]
) -> tuple[Placement, Sequence[ShardPlace]]:
    """The placement that was asked for, and where all its shards lie."""
    base, there = record.plan.following or record.plan.current, len(record.shards)
    if wish in (ShardWish(), ShardWish(back=True)):
        return base, record.shards
    used = sorted(set(base.ranges.owners))
    servers = list(dict.fromkeys(record.shards[number].server for number in used if record.shards[number].server))
    named = name() if servers or wish.servers else ""
    count = wish.placement.shards if wish.placement else wish.shards or max(len(wish.servers), len(used))
    key = wish.key or key_name(base)
    placement = wish.placement or page_placement(key, count, base.key.secret)
    if wish.servers and _servers(record, used) != _in_turn(wish.servers, count):
        return _from(there, placement), (
            *record.shards,
            *places_for(there + count, wish.servers, there, name=named),
        )
    first = used[0]  # an earlier move to servers may have left the first ones empty
    if not {place.server for place in record.shards[first : first + count]} <= set(servers or [""]):
        first = there  # those that follow lie elsewhere: a move to them was taken back
    more = places_for(first + count, servers, first, name=named)[there - first :]
    return _from(first, placement), (*record.shards, *more)


def _from(first: int, placement: Placement) -> Placement:
    """The same placement on shards from this number on: a number that other shards had is never given again."""
    ranges = Ranges(placement.ranges.bounds, tuple(owner + first for owner in placement.ranges.owners))
    zones = tuple(replace(zone, shards=tuple(shard + first for shard in zone.shards)) for zone in placement.zones)
    return replace(placement, ranges=ranges, shards=placement.shards + first, zones=zones)


def _servers(record: PlacementRecord, used: Sequence[int]) -> list[str]:
    return [record.shards[number].server for number in used]


def _in_turn(servers: Sequence[str], count: int) -> list[str]:
    return [servers[number % len(servers)] for number in range(count)]


def _opened(folder: DataFolder, place: ShardPlace, number: int, faults: Faults | None, opened: ExitStack) -> Shard:
    shard = open_shard(folder, place, StoreLimits(shard=number), faults=faults)
    opened.callback(shard.close)
    return shard


def _wait(folder: DataFolder, record: PlacementRecord, shards: Sequence[Shard]) -> None:
    time.sleep(_PAUSE)
    _forget_dead_leases(folder, record, shards)


def _forget_dead_leases(folder: DataFolder, record: PlacementRecord, shards: Sequence[Shard]) -> None:
    """Where no crawl runs, nobody visits the pages that a killed one had leased. On servers others may."""
    if any(place.server for place in record.shards):
        return
    with suppress(StoreLocked), folder.locked():
        for shard in shards:
            shard.forget_leases()
