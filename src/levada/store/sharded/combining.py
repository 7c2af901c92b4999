"""Several shards as one store: shared leases, delivered links and combined answers.

A visit writes links to other shards into its own shard's outbox, in its own transaction. They are then added to
their shard (a second time is harmless) and only then deleted from the outbox. A crash in between repeats a
delivery; it never loses one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from heapq import merge
from math import ceil
from typing import Protocol, TypeVar

import msgspec

from levada.core.reasons import Reason
from levada.core.records import CollectionStats, FoundUrl, Lease, OutboxLink, RobotsRecord, SiteRecord, VisitResult
from levada.store.base import Shard
from levada.store.sharded.plan import ShardPlan

Ask = Callable[[Shard, int], list[Lease]]
_AT_ONCE = 1_000


class _Numbered(Protocol):
    @property
    def seq(self) -> int: ...


T = TypeVar("T", bound=_Numbered)


def lease_from(shards: Sequence[Shard], now: float, limit: int, ask: Ask) -> list[Lease]:
    """At most `limit` leases: each site whose turn has come gives its fair share, and any site fills up the
    rest."""
    if limit <= 0:
        return []
    leases: list[Lease] = []
    drained: set[int] = set()
    for place, wanted in _shares(shards, now, limit):
        count = min(wanted, limit - len(leases))
        got = ask(shards[place], count) if count > 0 else []
        leases += got
        if len(got) < count:
            drained.add(place)
    for place, shard in enumerate(shards):
        if place not in drained and len(leases) < limit:
            leases += ask(shard, limit - len(leases))
    return leases


def addressed(result: VisitResult, plan: ShardPlan, shard: int) -> VisitResult:
    """The visit with its links split into those for its own shard and those for the outbox."""
    found = (*result.found, *result.elsewhere)
    own = tuple(each for each in found if plan.places(each.url) == (shard,))
    if len(own) == len(found):
        return result
    others = tuple(each for each in found if plan.places(each.url) != (shard,))
    return msgspec.structs.replace(result, found=own, elsewhere=others)


def place_to_hold(found: FoundUrl, plan: ShardPlan, shards: Sequence[Shard]) -> int | None:
    """The shard that this URL is added to; None if it is known on a shard that it has yet to leave. It is not added
    to that shard again: the page may have left by then, and would be there a second time."""
    old = plan.before(found.url)
    if old is None or shards[old].page(found.url) is None:
        return plan.home(found.url)
    record = shards[old].site(found.site) if found.admit else None
    if record is not None and not record.admitted:
        shards[old].save(msgspec.structs.replace(record, admitted=True))
    return None


def deliver(plan: ShardPlan, shards: Sequence[Shard]) -> int:
    """Empty every outbox; return how many links were new to their shard."""
    new = 0
    for shard in shards:
        while links := shard.undelivered(_AT_ONCE):
            for place, some in _by_place(links, plan, shards).items():
                new += shards[place].receive(some)
            # Deleted last: a crash before this line repeats the delivery, it never loses it.
            shard.delivered([link.id for link in links])
    return new


def one_site(records: Sequence[SiteRecord]) -> SiteRecord:
    """What several shards know of a site: counts add up, the strictest limits and the newest robots.txt apply."""
    if len(records) == 1:
        return records[0]
    delays = [record.delay for record in records if record.delay is not None]
    return SiteRecord(
        site=records[0].site,
        admitted=any(record.admitted for record in records),
        pages=sum(record.pages for record in records),
        failures=max(record.failures for record in records),
        rest_until=max(record.rest_until for record in records),
        delay=max(delays, default=None),
        robots=_newest_robots(records),
        refused=_refused(records),
    )


def merged_stats(each: Sequence[CollectionStats], *, sites_whole: bool) -> CollectionStats:
    """The sums. Where sites are spread over shards, the largest number of sites of a shard."""
    count = sum if sites_whole else max
    return CollectionStats(
        sites=count(one.sites for one in each),
        known=sum(one.known for one in each),
        unvisited=sum(one.unvisited for one in each),
        due=sum(one.due for one in each),
        leased=sum(one.leased for one in each),
        stored=sum(one.stored for one in each),
        versions=sum(one.versions for one in each),
        next_due=min((one.next_due for one in each if one.next_due is not None), default=None),
        workable=any(one.workable for one in each),
        states=_added(one.states for one in each),
        refused=_added(one.refused for one in each),
        bytes=sum(one.bytes for one in each),
    )


def in_order(streams: Iterable[Sequence[T]], limit: int) -> list[T]:
    """The first `limit` entries by `seq`. Entries with one number stay together, so that none is missed."""
    taken: list[T] = []
    for step in merge(*streams, key=lambda each: each.seq):
        if len(taken) >= limit and (not taken or step.seq != taken[-1].seq):
            break
        taken.append(step)
    return taken


def _shares(shards: Sequence[Shard], now: float, limit: int) -> list[tuple[int, int]]:
    """Shards in the order of their first site's turn, each with the number of pages its first sites give."""
    heads = sorted((*head, place) for place, shard in enumerate(shards) for head in shard.waiting(now, limit))
    sites = Counter(place for _, _, place in heads[:limit])
    fair = ceil(limit / max(1, sites.total()))
    return [(place, fair * count) for place, count in sites.items()]


def _by_place(links: Sequence[OutboxLink], plan: ShardPlan, shards: Sequence[Shard]) -> dict[int, list[OutboxLink]]:
    places: defaultdict[int, list[OutboxLink]] = defaultdict(list)
    for link in links:
        place = place_to_hold(link.found, plan, shards)
        if place is not None:
            places[place].append(link)
    return places


def _newest_robots(records: Sequence[SiteRecord]) -> tuple[tuple[str, RobotsRecord], ...]:
    newest: dict[str, RobotsRecord] = {}
    for record in records:
        for scheme, robots in record.robots:
            if scheme not in newest or robots.fetched_at > newest[scheme].fetched_at:
                newest[scheme] = robots
    return tuple(sorted(newest.items()))


def _refused(records: Sequence[SiteRecord]) -> tuple[tuple[Reason, int, str], ...]:
    counts: dict[Reason, tuple[int, str]] = {}
    for record in records:
        for reason, n, example in record.refused:
            before, first = counts.get(reason, (0, example))
            counts[reason] = (before + n, first)
    return tuple((reason, *counts[reason]) for reason in sorted(counts))


def _added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)
