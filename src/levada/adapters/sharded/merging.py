"""How do the answers of several shards become one?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import merge
from typing import Protocol, TypeVar

from levada.reasons import Reason
from levada.records import RobotsRecord, SiteRecord, Standing

__all__ = ["in_order", "one_site", "one_standing"]


class _Numbered(Protocol):
    @property
    def seq(self) -> int: ...


T = TypeVar("T", bound=_Numbered)


def one_site(records: Sequence[SiteRecord]) -> SiteRecord:
    """What several shards know of a site: counts add up, the strictest caution holds, and the newest robots.txt."""
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


def one_standing(each: Sequence[Standing], *, sites_whole: bool) -> Standing:
    """Sums; where sites are not kept whole, as many sites as the shard with most of them has."""
    count = sum if sites_whole else max
    return Standing(
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
    """The first `limit` steps by `seq`; steps with one number are not torn apart, so that none is passed over."""
    taken: list[T] = []
    for step in merge(*streams, key=lambda each: each.seq):
        if len(taken) >= limit and (not taken or step.seq != taken[-1].seq):
            break
        taken.append(step)
    return taken


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
