"""How does a link reach the shard that is to hold it?

A visit leaves links to other shards in its own shard's outbox, in its own transaction. From there they are taken to
their shard, which holds them (a second time is harmless), and only then crossed out. A crash in between repeats a
delivery; it never loses one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from levada.adapters.sharded.plan import ShardPlan
from levada.adapters.sharded.shard import Shard
from levada.records import Forwarded, Found, Settled

__all__ = ["addressed", "deliver", "place_to_hold"]

_AT_ONCE = 1_000


def addressed(settled: Settled, plan: ShardPlan, shard: int) -> Settled:
    """The visit with its links told apart: those that its own shard is to hold, and those for the outbox."""
    found = (*settled.found, *settled.elsewhere)
    own = tuple(each for each in found if plan.places(each.url) == (shard,))
    if len(own) == len(found):
        return settled
    others = tuple(each for each in found if plan.places(each.url) != (shard,))
    return msgspec.structs.replace(settled, found=own, elsewhere=others)


def place_to_hold(found: Found, plan: ShardPlan, shards: Sequence[Shard]) -> int | None:
    """The shard that is to hold this URL; None if it is held where it has yet to move away from.

    It is not handed to that shard again: by then the page may have gone, and would be there a second time.
    """
    old = plan.before(found.url)
    if old is None or shards[old].page(found.url) is None:
        return plan.home(found.url)
    record = shards[old].site(found.site) if found.admit else None
    if record is not None and not record.admitted:
        shards[old].save(msgspec.structs.replace(record, admitted=True))
    return None


def deliver(plan: ShardPlan, shards: Sequence[Shard]) -> int:
    """Empty every outbox; how many links that were new to their shard."""
    new = 0
    for shard in shards:
        while links := shard.undelivered(_AT_ONCE):
            for place, some in _by_place(links, plan, shards).items():
                new += shards[place].receive(some)
            # Crossed out last: a crash before this line repeats the delivery, it never loses it.
            shard.delivered([link.id for link in links])
    return new


def _by_place(links: Sequence[Forwarded], plan: ShardPlan, shards: Sequence[Shard]) -> dict[int, list[Forwarded]]:
    places: defaultdict[int, list[Forwarded]] = defaultdict(list)
    for link in links:
        place = place_to_hold(link.found, plan, shards)
        if place is not None:
            places[place].append(link)
    return places
