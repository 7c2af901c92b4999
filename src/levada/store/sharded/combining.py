"""Several shards as one store: shared leases, delivered links and combined answers.

A visit writes links to other shards into its own shard's outbox, in its own transaction. They are then added to
their shard (a second time is harmless) and only then deleted from the outbox. A crash in between repeats a
delivery; it never loses one. Links for a shard that is away wait in the outbox until it is back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from heapq import merge
from math import ceil
from typing import Protocol, TypeVar

import msgspec

from levada.core.errors import StoreAway
from levada.core.reasons import Reason
from levada.core.records import CollectionStats, FoundUrl, Lease, OutboxLink, RobotsRecord, SiteRecord, VisitResult
from levada.store.base import Shard
from levada.store.sharded.plan import ShardPlan
from levada.store.sharded.remote import answers, begin, remote_shards

Ask = Callable[[Shard, int], list[Lease]]
_AT_ONCE = 1_000


class _Numbered(Protocol):
    @property
    def seq(self) -> int: ...


T = TypeVar("T", bound=_Numbered)
R = TypeVar("R")


def lease_from(shards: Mapping[int, Shard], now: float, limit: int, ask: Ask) -> list[Lease]:
    """At most `limit` leases: each site whose turn has come gives its fair share, and any site fills up the
    rest. A shard that is away gives none; `StoreAway` if all are."""
    if limit <= 0:
        return []
    wanted = _shares(answers(shards, lambda _, shard: shard.waiting(now, limit)), limit)
    first = {number: shards[number] for number in wanted}
    got = answers(first, lambda number, shard: ask(shard, wanted[number]), _give_back) if first else {}
    leases = [lease for each in got.values() for lease in each]
    for number, shard in shards.items():
        is_drained = number in wanted and len(got.get(number, ())) < wanted[number]
        if not is_drained and (rest := limit - len(leases)) > 0:
            with suppress(StoreAway):
                leases += begin(shard, lambda there, rest=rest: ask(there, rest), _give_back)()  # type: ignore[misc]
    return leases


def _give_back(shard: Shard, leases: list[Lease]) -> None:
    """Release pages that were leased too late for anybody to visit them."""
    shard.release(leases)


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


class Outboxes:
    """Delivers the links that wait in the outboxes. With `strict`, a shard that is away is an error."""

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._passed: dict[int, int] = {}  # by shard: up to this id, links wait for shards that are away
        self._seen: tuple[ShardPlan, int] | None = None

    def deliver(self, plan: ShardPlan, shards: Sequence[Shard]) -> int:
        """Empty every outbox as far as possible; return how many links were new to their shard."""
        seen = plan, sum(shard.returns for shard in remote_shards(shards).values())
        if seen != self._seen:
            self._passed.clear()  # what waited may be delivered now
            self._seen = seen
        new, waiting = 0, dict(enumerate(shards))
        while waiting:
            passed = {number: self._passed.get(number, 0) for number in waiting}
            outboxes = self._ask(waiting, partial(_undelivered, passed))
            waiting = {number: shards[number] for number, links in outboxes.items() if links}
            new += self._deliver({number: outboxes[number] for number in waiting}, plan, shards)
        return new

    def _deliver(self, outboxes: Mapping[int, Sequence[OutboxLink]], plan: ShardPlan, shards: Sequence[Shard]) -> int:
        targets: defaultdict[int, list[OutboxLink]] = defaultdict(list)
        done: defaultdict[int, list[int]] = defaultdict(list)  # ids of delivered links, by outbox
        sent: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # outbox and id, by target
        for source, links in outboxes.items():
            for link in links:
                try:
                    place = place_to_hold(link.found, plan, shards)
                except StoreAway:
                    if self._strict:
                        raise
                    continue
                if place is None:
                    done[source].append(link.id)
                else:
                    targets[place].append(link)
                    sent[place].append((source, link.id))
        received = self._ask({place: shards[place] for place in targets}, lambda n, shard: shard.receive(targets[n]))
        for place in received:
            for source, id in sent[place]:
                done[source].append(id)
        for source, links in outboxes.items():
            if len(done[source]) < len(links):
                self._passed[source] = links[-1].id
        # Deleted last: a crash before this line repeats the delivery, it never loses it.
        self._ask({source: shards[source] for source in done}, lambda n, shard: shard.delivered(done[n]))
        return sum(received.values())

    def _ask(self, shards: Mapping[int, Shard], ask: Callable[[int, Shard], R]) -> dict[int, R]:
        try:
            return answers(shards, ask, some=not self._strict)
        except StoreAway:
            if self._strict:
                raise
            return {}


def _undelivered(after: Mapping[int, int], number: int, shard: Shard) -> list[OutboxLink]:
    return shard.undelivered(_AT_ONCE, after[number])


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


def _shares(heads: Mapping[int, Sequence[tuple[float, int]]], limit: int) -> dict[int, int]:
    """How many pages each shard gives, by whose sites have their turn first."""
    turns = sorted((*head, number) for number, each in heads.items() for head in each)
    sites = Counter(number for _, _, number in turns[:limit])
    fair, left = ceil(limit / max(1, sites.total())), limit
    shares = {}
    for number, count in sites.items():
        shares[number] = min(fair * count, left)
        left -= shares[number]
    return {number: share for number, share in shares.items() if share}


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
