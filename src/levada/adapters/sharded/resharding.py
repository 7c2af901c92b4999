"""How do pages come to their new shards while everybody goes on reading and writing?

Shard by shard, some pages at a time, each in four transactions: fenced at the source, taken in (still fenced) by
the target, let go by the source, opened up at the target. The plan names both places before the first page moves,
and says of each source when it is emptied. Nothing else is written down: after a crash, what is fenced tells what
was under way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice

import msgspec

from levada.adapters.faults import NoFaults
from levada.adapters.sharded.delivery import deliver
from levada.adapters.sharded.plan import ShardPlan
from levada.adapters.sharded.shard import Shard
from levada.ports import Faults

__all__ = ["Moved", "Mover"]

_WALKED_AT_ONCE = 2_000


class Moved(msgspec.Struct, frozen=True):
    """How far a move has come."""

    looked_at: int
    moved: int


class Mover:
    """`plan` is one with a `following`; whoever replaces it does so between calls."""

    def __init__(
        self,
        shards: Sequence[Shard],
        plan: ShardPlan,
        *,
        batch: int = 50,
        faults: Faults | None = None,
        on_progress: Callable[[Moved], None] = lambda moved: None,
    ) -> None:
        if plan.following is None:
            raise ValueError("the plan names no other placement to move to")
        self._shards = shards
        self._plan = plan
        self._batch = batch
        self._faults = faults or NoFaults()
        self._on_progress = on_progress
        self._looked_at = self._moved = 0

    def resume(self) -> int:
        """Bring to an end what an earlier mover had begun; how many pages that were."""
        under_way: set[str] = set()
        for place, shard in enumerate(self._shards):
            urls = [url for _, url in shard.fenced()]
            under_way.update(urls)
            self._move(place, [url for url in urls if self._plan.home(url) != place])
        # What is left of the fences is at home: its source has let it go, or never had it.
        for place, shard in enumerate(self._shards):
            shard.open_up([id for id, url in shard.fenced() if self._plan.home(url) == place])
        return len(under_way)

    def empty(self, place: int) -> int:
        """Move what this shard holds for others; how many pages are left because somebody visits them."""
        last = held_back = 0
        while walked := self._shards[place].urls_after(last, _WALKED_AT_ONCE):
            last = walked[-1][0]
            leaving = iter([url for _, url in walked if self._plan.home(url) != place])
            while some := list(islice(leaving, self._batch)):
                held_back += len(some) - self._move(place, some)
            self._looked_at += len(walked)
            self._tell()
        deliver(self._plan, self._shards)
        return held_back

    def _move(self, place: int, urls: Sequence[str]) -> int:
        """How many of them nobody had leased."""
        source = self._shards[place]
        pages = source.fence(urls)
        self._faults.reach("move.fenced")
        by_target: defaultdict[int, list[int]] = defaultdict(list)
        for moved in pages:
            by_target[self._plan.home(moved.page.url)].append(moved.page.id)
        for target, ids in by_target.items():
            self._shards[target].take_in([moved for moved in pages if moved.page.id in set(ids)])
            self._faults.reach("move.taken-in")
            source.let_go(ids)
            self._faults.reach("move.let-go")
            self._shards[target].open_up(ids)
            self._faults.reach("move.opened")
        self._moved += len(pages)
        return len(pages)

    def _tell(self) -> None:
        self._on_progress(Moved(self._looked_at, self._moved))
