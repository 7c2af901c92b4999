"""Resharding: pages move to their new shards while other processes read and write, resumable at any instant.

It works shard by shard, some pages at a time, in four transactions: fenced at the source, imported (still fenced)
by the target, deleted at the source, unfenced at the target. The plan names both places before the first page
moves, and records which sources are emptied. Nothing else is stored: after a crash, the fences show what was in
progress.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice

import msgspec

from levada.core.errors import UsageError
from levada.core.protocols import Faults
from levada.sharding.placement import Placement
from levada.store.base import Shard
from levada.store.faults import NoFaults
from levada.store.sharded.combining import Outboxes
from levada.store.sharded.plan import PlacementRecord, PlanStore, ShardPlace, ShardPlan

_WALKED_AT_ONCE = 2_000


class Moved(msgspec.Struct, frozen=True):
    """The progress of a move."""

    looked_at: int
    moved: int


class Mover:
    """Moves pages by a plan that names a `following` placement. The plan is replaced only between calls."""

    def __init__(
        self,
        shards: Sequence[Shard],
        plan: ShardPlan,
        *,
        batch: int = 50,
        faults: Faults | None = None,
        on_progress: Callable[[Moved], None] = lambda moved: None,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        if plan.following is None:
            raise ValueError("the plan names no other placement to move to")
        self._shards = shards
        self._plan = plan
        self._batch = batch
        self._faults = faults or NoFaults()
        self._on_progress = on_progress
        self._now = now
        self._looked_at = self._moved = 0

    def resume(self) -> int:
        """Finish what an earlier mover began; return how many pages that were."""
        under_way: set[str] = set()
        for place, shard in enumerate(self._shards):
            urls = [url for _, url in shard.fenced()]
            under_way.update(urls)
            self._move(place, [url for url in urls if self._plan.home(url) != place])
        # The other fenced pages are at home: their source has deleted them, or never had them.
        for place, shard in enumerate(self._shards):
            if at_home := [id for id, url in shard.fenced() if self._plan.home(url) == place]:
                shard.unfence(at_home)
        return len(under_way)

    def empty(self, place: int) -> int:
        """Move what this shard holds for others; return how many pages stay because they are leased."""
        last = held_back = 0
        while walked := self._shards[place].urls_after(last, _WALKED_AT_ONCE):
            last = walked[-1][0]
            leaving = iter([url for _, url in walked if self._plan.home(url) != place])
            while some := list(islice(leaving, self._batch)):
                held_back += len(some) - self._move(place, some)
            self._looked_at += len(walked)
            self._on_progress(Moved(self._looked_at, self._moved))
        Outboxes(strict=True).deliver(self._plan, self._shards)
        return held_back

    def _move(self, place: int, urls: Sequence[str]) -> int:
        """Move those of the pages that are not leased; return how many. A lease that has ended is that of a dead
        process, and must not hold back the move for ever."""
        if not urls:
            return 0
        source = self._shards[place]
        pages = source.fence(urls, self._now())
        self._faults.reach("move.fenced")
        by_target: defaultdict[int, list[int]] = defaultdict(list)
        for moved in pages:
            by_target[self._plan.home(moved.page.url)].append(moved.page.id)
        for target, ids in by_target.items():
            self._shards[target].import_pages([moved for moved in pages if moved.page.id in set(ids)])
            self._faults.reach("move.taken-in")
            source.let_go(ids)
            self._faults.reach("move.let-go")
            self._shards[target].unfence(ids)
            self._faults.reach("move.opened")
        self._moved += len(pages)
        return len(pages)


def begin_move(file: PlanStore, wanted: Placement, places: Sequence[ShardPlace]) -> PlacementRecord:
    """Record where pages go before any of them moves. A move to the same placement continues."""
    record = file.read()
    plan = record.plan
    if plan.following is not None and plan.following != wanted:
        raise UsageError(
            "pages are moving to another placement already: run 'levada shard apply' without options to finish "
            "that, or 'levada shard apply --back' to take them back"
        )
    if plan.following is None and plan.current != wanted:
        shards = (*record.shards, *places[len(record.shards) :])
        record = msgspec.structs.replace(record, plan=ShardPlan(plan.current, wanted), shards=shards)
        file.replace(record)
    return record


def turn_back(file: PlanStore) -> PlacementRecord:
    """Let the pages that have moved return, and those added since follow. A return that has begun continues. A page
    lies at one of the two places, whichever of them is the new one, so this is safe at any stage of the move."""
    record = file.read()
    plan = record.plan
    if plan.following is None:
        raise UsageError("no pages are moving: there is nothing to take back")
    if not plan.returning:
        turned = ShardPlan(plan.following, plan.current, returning=True)
        record = msgspec.structs.replace(record, plan=turned)
        file.replace(record)
    return record


def move_pages(
    file: PlanStore,
    shards: Sequence[Shard],
    *,
    wait: Callable[[], None],
    faults: Faults | None = None,
    on_progress: Callable[[Moved], None] = lambda moved: None,
    now: Callable[[], float] = lambda: 0.0,
) -> None:
    """Empty each shard of what others should hold; call `wait` before trying leased pages again. `now` is the time of
    the collection, by which leases end."""
    record = file.read()
    plan = record.plan
    if plan.following is None:
        return
    mover = Mover(shards, plan, faults=faults, on_progress=on_progress, now=now)
    mover.resume()
    for place in range(plan.current.shards):
        if place in plan.emptied:
            continue
        while mover.empty(place):
            wait()
        plan = msgspec.structs.replace(plan, emptied=(*plan.emptied, place))
        file.replace(msgspec.structs.replace(record, plan=plan))


def finish_move(file: PlanStore) -> PlacementRecord:
    """All pages are where they belong: use one placement again. Empty shards stay known for their old change
    log."""
    record = file.read()
    plan = record.plan
    if plan.following is None:
        return record
    if len(plan.emptied) < plan.current.shards:
        raise UsageError("not all pages have moved yet: run 'levada shard apply' again")
    done = msgspec.structs.replace(record, plan=ShardPlan(plan.following))
    file.replace(done)
    return done
