"""A small collection on shards in one folder, filled and moved; as a program it is killed at every point in turn.

It forks, which a test process with threads must not.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from msgspec.structs import replace

from levada.core.folder import DataFolder
from levada.core.protocols import Faults
from levada.core.records import Lease, SiteRecord, VisitResult
from levada.sharding.page_keys import page_placement
from levada.store.base import Shard, StoreLimits
from levada.store.opening import open_shard
from levada.store.sharded import ShardedStore, ShardPlan
from levada.store.sharded.plan import PlacementRecord, PlanFile, new_record
from levada.store.sharded.resharding import begin_move, finish_move, move_pages, turn_back
from levada.testing.store.visits import changed, first, gone, links, unchanged
from tests.faults import MOVING_POINTS, KillAt
from tests.sharded import open_places, places

__all__ = ["LIMITS", "POINTS", "close_all", "fill", "open_collection", "reshard", "take_back"]

LIMITS = StoreLimits(known_urls=100)
_BETWEEN = ("begin", "begun")  # nothing has been written since the point before
POINTS = (
    *(each for each in MOVING_POINTS if not each.endswith(_BETWEEN)),
    "move.fenced",
    "move.taken-in",
    "move.let-go",
    "move.opened",
)


def open_collection(folder: Path, shards: int, key: str = "site") -> tuple[ShardedStore, PlanFile]:
    """Opened anew, or made with so many shards."""
    folder.mkdir(parents=True, exist_ok=True)
    file = PlanFile(folder / "placement.json")
    if not file.path.exists():
        file.replace(new_record(ShardPlan(page_placement(key, shards)), places(folder, shards)))
    opened = open_places(folder, file.read().shards, LIMITS)

    def more(number: int) -> Shard:
        limits = replace(LIMITS, shard=number)
        return open_shard(DataFolder(folder), file.read().shards[number], limits)

    return ShardedStore(opened, file, more=more), file


def close_all(store: ShardedStore, file: PlanFile) -> None:
    store.close()
    file.close()


def fill(store: ShardedStore) -> None:
    """Pages of a few sites that were visited, changed, gone or never seen, with links between the sites."""
    for site in ("a.org", "b.org:8080", "c.net"):
        store.add(links(site, 3), [], 0.0)
    store.save(SiteRecord("a.org", admitted=True, delay=0.0))
    for step in range(3):
        now = step * 1000.0
        store.commit([_visit(lease, now, step) for lease in store.lease(now, 12, 60.0)])


def _visit(lease: Lease, now: float, step: int) -> VisitResult:
    if lease.page.version == 0:
        found = tuple(links("d.org", 2, start=step) + links(lease.page.site, 1, start=20 + step))
        return first(lease, now, f"text {lease.page.url}", found)
    if lease.page.url.endswith("1"):
        return gone(lease, now, next_visit=now + 60.0)
    return changed(lease, now, f"text {step}") if lease.page.url.endswith("2") else unchanged(lease, now)


def reshard(folder: Path, shards: int, key: str, faults: Faults | None = None) -> None:
    """What `levada shard apply` does when it is alone; after a crash it is simply done again."""
    file = PlanFile(folder / "placement.json")
    _move(folder, file, begin_move(file, page_placement(key, shards), places(folder, shards)), faults)


def take_back(folder: Path, faults: Faults | None = None) -> None:
    """The same with `--back`."""
    file = PlanFile(folder / "placement.json")
    _move(folder, file, turn_back(file), faults)


def _move(folder: Path, file: PlanFile, record: PlacementRecord, faults: Faults | None) -> None:
    opened = open_places(folder, record.shards, LIMITS, faults)
    try:
        for shard in opened:
            shard.forget_leases()
        move_pages(file, opened, wait=lambda: None, faults=faults)
        finish_move(file)
    finally:
        for shard in opened:
            shard.close()
        file.close()


def _killed_at(point: str, folder: Path, shards: int, key: str) -> int:
    child = os.fork()
    if child == 0:
        try:
            reshard(folder, shards, key, KillAt(point))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main(folder: Path, shards: int, key: str) -> None:
    """One copy of `folder/start` for each point."""
    ends = {}
    for point in POINTS:
        shutil.copytree(folder / "start", folder / point)
        ends[point] = _killed_at(point, folder / point, shards, key)
    print(json.dumps(ends))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
