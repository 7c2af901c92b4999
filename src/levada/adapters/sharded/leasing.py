"""Which shard gives how many pages to a lease? As if all sites stood in one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil

from levada.adapters.sharded.shard import Shard
from levada.records import Lease

__all__ = ["lease_from"]

Ask = Callable[[Shard, int], list[Lease]]


def lease_from(shards: Sequence[Shard], now: float, limit: int, ask: Ask) -> list[Lease]:
    """At most `limit` leases: each site whose turn has come gives its fair share, what is left over goes to any."""
    if limit <= 0:
        return []
    leases: list[Lease] = []
    drained: set[int] = set()
    for place, wanted in _shares(shards, now, limit):
        asked = min(wanted, limit - len(leases))
        got = ask(shards[place], asked) if asked > 0 else []
        leases += got
        if len(got) < asked:
            drained.add(place)
    for place, shard in enumerate(shards):
        if place not in drained and len(leases) < limit:
            leases += ask(shard, limit - len(leases))
    return leases


def _shares(shards: Sequence[Shard], now: float, limit: int) -> list[tuple[int, int]]:
    """Shards in the order of their first site's turn, with what their sites among the first are to give."""
    heads = sorted((*head, place) for place, shard in enumerate(shards) for head in shard.waiting(now, limit))
    sites = Counter(place for _, _, place in heads[:limit])
    fair = ceil(limit / max(1, sites.total()))
    return [(place, fair * count) for place, count in sites.items()]
