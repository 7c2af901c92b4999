"""How does a whole collection come from one placement to another, resumable at any instant?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from levada.adapters.sharded.plan import ShardPlan
from levada.adapters.sharded.plan_file import PlacementRecord, PlanKeeper, ShardPlace
from levada.adapters.sharded.resharding import Moved, Mover
from levada.adapters.sharded.shard import Shard
from levada.errors import UsageError
from levada.ports import Faults
from levada.sharding.placement import Placement

__all__ = ["begin_move", "finish_move", "move_pages", "turn_back"]


def begin_move(file: PlanKeeper, wanted: Placement, places: Sequence[ShardPlace]) -> PlacementRecord:
    """Write down where pages are to go, before any of them moves; a move to there that is under way goes on."""
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


def turn_back(file: PlanKeeper) -> PlacementRecord:
    """Let the pages that have moved return, and those that were added since follow; a return under way goes on.

    A page lies at one of the two places, whichever of them is the new one: so this is safe however far the move is.
    """
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
    file: PlanKeeper,
    shards: Sequence[Shard],
    *,
    wait: Callable[[], None],
    faults: Faults | None = None,
    on_progress: Callable[[Moved], None] = lambda moved: None,
) -> None:
    """Empty each shard of what others are to hold; `wait` before pages that somebody visits are asked again."""
    record = file.read()
    plan = record.plan
    if plan.following is None:
        return
    mover = Mover(shards, plan, faults=faults, on_progress=on_progress)
    mover.resume()
    for place in range(plan.current.shards):
        if place in plan.emptied:
            continue
        while mover.empty(place):
            wait()
        plan = msgspec.structs.replace(plan, emptied=(*plan.emptied, place))
        file.replace(msgspec.structs.replace(record, plan=plan))


def finish_move(file: PlanKeeper) -> PlacementRecord:
    """All pages are where they belong: one placement again. Shards without pages stay known: they hold old news."""
    record = file.read()
    plan = record.plan
    if plan.following is None:
        return record
    if len(plan.emptied) < plan.current.shards:
        raise UsageError("not all pages have moved yet: run 'levada shard apply' again")
    done = msgspec.structs.replace(record, plan=ShardPlan(plan.following))
    file.replace(done)
    return done
