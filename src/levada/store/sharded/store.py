"""A collection over several shards, as one store.

A query for one URL goes to one shard, or to two while pages move. A query for all pages goes to every shard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from math import ceil
from operator import attrgetter
from typing import ClassVar, TypeVar, cast

from msgspec import structs

from levada.core.errors import UsageError
from levada.core.records import (
    Change,
    ChangeEvent,
    ChangeHint,
    CollectionStats,
    Document,
    FoundUrl,
    Lease,
    PageRecord,
    PageText,
    PlanSelection,
    Refusal,
    Signals,
    SiteRecord,
    VersionInfo,
    VisitResult,
)
from levada.pages.urls import newest_runs
from levada.store.base import Capability, Shard, Sliced, StoreLimits, WithLimits
from levada.store.rules import shard_of_page, shard_of_token, warn_of_lifted
from levada.store.sharded.absent import EmptyShard, UnreachableShard
from levada.store.sharded.combining import (
    addressed,
    deliver,
    in_order,
    lease_from,
    merged_stats,
    one_site,
    place_to_hold,
)
from levada.store.sharded.forgetting import ShardedForgetting
from levada.store.sharded.plan import PlanSource, ShardPlan

T = TypeVar("T")


def limits_of_shard(limits: StoreLimits, plan: ShardPlan) -> StoreLimits:
    """The limits of each shard of a collection with these limits."""
    if plan.keeps_sites_whole:
        return limits
    # Each shard holds and leases only its share of a site.
    most, delay = ceil(limits.max_pages_per_site / plan.used), limits.delay * plan.used
    return structs.replace(limits, max_pages_per_site=most, delay=delay, parts=plan.used)


class ShardedStore(ShardedForgetting):
    """`more(n)` opens shard n when the plan comes to name it; without `more` the shards are fixed.

    A write to one shard is one transaction. What a visit leaves for other shards waits there for delivery. Sequence
    numbers ascend over all shards as long as one process writes; followers follow each shard by itself.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.FORGET, Capability.LIMITS, Capability.SLICES})

    def __init__(
        self, shards: Sequence[Shard], plan: PlanSource, *, more: Callable[[int], Shard] | None = None
    ) -> None:
        unfit = [number for number, shard in enumerate(shards) if Capability.SHARD not in shard.capabilities]
        if unfit:
            raise UsageError(f"the store of shard {unfit[0]} cannot be one of several: choose another kind of store")
        self._shards = list(shards)
        self._plan = plan
        self._more = more
        self._limits: StoreLimits | None = None  # those that were set after the shards were opened
        self._seq = 0
        self._slices: frozenset[int] | None = None

    def set_limits(self, limits: StoreLimits) -> None:
        with self._plan.steady() as plan:
            self._limits = limits
            for shard in self._shards:
                self._limit(shard, limits, plan)

    def own(self, slices: frozenset[int] | None) -> None:
        """Of the shards that can tell; those that lie in files have one scheduler."""
        self._slices = slices
        for shard in self._shards:
            if Capability.SLICES in shard.capabilities:
                cast(Sliced, shard).own(slices)

    def end_leases_by(self, slices: frozenset[int], latest: float) -> None:
        for shard in self.shards:
            if Capability.SLICES in shard.capabilities:
                cast(Sliced, shard).end_leases_by(slices, latest)

    def _limit(self, shard: Shard, limits: StoreLimits, plan: ShardPlan) -> None:
        if Capability.LIMITS in shard.capabilities:
            cast(WithLimits, shard).set_limits(limits_of_shard(limits, plan))

    @property
    def shards(self) -> tuple[Shard, ...]:
        with self._plan.steady() as plan:
            return tuple(self._open(plan))

    @property
    def logs(self) -> tuple[Shard, ...]:
        """The shards, and former shards that can be reached, for their old entries of the change log."""
        with self._plan.steady() as plan:
            used = len(self._open(plan))
        left = [
            EmptyShard(number) if isinstance(shard, UnreachableShard) else shard
            for number, shard in enumerate(self._shards[used:], used)
        ]
        return (*self._shards[:used], *left)

    @property
    def away(self) -> dict[int, str]:
        """Answers that do not need these shards are still given."""
        return {number: shard.why for number, shard in enumerate(self._shards) if isinstance(shard, UnreachableShard)}

    @property
    def format(self) -> int:
        return self._shards[0].format

    def close(self) -> None:
        for shard in self._shards:
            shard.close()
        self._plan.close()

    def check(self) -> None:
        for shard in self._shards:
            shard.check()

    def deliver(self) -> int:
        """Deliver what an earlier process left in the outboxes."""
        with self._plan.steady() as plan:
            return deliver(plan, self._open(plan))

    def add(
        self, found: Sequence[FoundUrl], refused: Sequence[Refusal], now: float, *, found_on: int | None = None
    ) -> int:
        with self._plan.steady() as plan:
            shards = self._open(plan)
            if found_on is None:
                warn_of_lifted(self.lift(found))
            pages: defaultdict[int, list[FoundUrl]] = defaultdict(list)
            refusals: defaultdict[int, list[Refusal]] = defaultdict(list)
            for each in found:
                place = place_to_hold(each, plan, shards)
                if place is not None:
                    pages[place].append(each)
            for refusal in refused:
                refusals[plan.shards_of_site(refusal.site)[0]].append(refusal)
            places = sorted({*pages, *refusals})
            return sum(shards[number].add(pages[number], refusals[number], now, found_on=found_on) for number in places)

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        return lease_from(self.shards, now, limit, lambda shard, count: shard.lease(now, count, seconds, due))

    def lease_url(self, url: str, now: float, seconds: float, *, out_of_turn: bool = False) -> Lease | None:
        return self._first(url, lambda shard: shard.lease_url(url, now, seconds, out_of_turn=out_of_turn))

    def planned(self, selection: PlanSelection, after: int, limit: int) -> list[PageRecord]:
        found = merge(*(shard.planned(selection, after, limit) for shard in self.shards), key=attrgetter("id"))
        return [next(copies) for _, copies in islice(groupby(found, attrgetter("id")), max(0, limit))]

    def count_planned(self, selection: PlanSelection, now: float) -> int:
        return sum(shard.count_planned(selection, now) for shard in self.shards)

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        with self._plan.steady() as plan:
            shards = self._open(plan)
            current = [False] * len(visits)
            for place, numbers in _by_lease([result.lease for result in visits]).items():
                if place < len(shards):
                    batch = [addressed(visits[number], plan, place) for number in numbers]
                    for number, is_current in zip(numbers, self._commit(shards[place], batch), strict=True):
                        current[number] = is_current
            if len(shards) > 1:
                deliver(plan, shards)
            return current

    def release(self, leases: Sequence[Lease]) -> None:
        shards = self.shards
        for place, numbers in _by_lease(leases).items():
            if place < len(shards):
                shards[place].release([leases[number] for number in numbers])

    def forget_leases(self) -> None:
        for shard in self.shards:
            shard.forget_leases()

    def limit_waits(self, now: float, latest: float) -> int:
        return sum(shard.limit_waits(now, latest) for shard in self.shards)

    def page(self, url: str) -> PageRecord | None:
        return self._first(url, lambda shard: shard.page(url))

    def originals(self, texts: Sequence[PageText]) -> list[str | None]:
        """Of a site on several shards, the page on the first of them."""
        with self._plan.steady() as plan:
            shards = self._open(plan)
            wanted: defaultdict[int, list[int]] = defaultdict(list)
            for number, text in enumerate(texts):
                for place in plan.shards_of_site(text.site):
                    wanted[place].append(number)
            found: dict[int, str] = {}
            for place in sorted(wanted):
                urls = shards[place].originals([texts[number] for number in wanted[place]])
                for number, url in zip(wanted[place], urls, strict=True):
                    if url is not None:
                        found.setdefault(number, url)
        return [found.get(number) for number in range(len(texts))]

    def near_runs(self, sites: Sequence[str]) -> dict[str, bytes]:
        with self._plan.steady() as plan:
            shards = self._open(plan)
            wanted: defaultdict[int, list[str]] = defaultdict(list)
            for site in sites:
                for place in plan.shards_of_site(site):
                    wanted[place].append(site)
            found: defaultdict[str, list[bytes]] = defaultdict(list)
            for place, names in wanted.items():
                for site, runs in shards[place].near_runs(names).items():
                    found[site].append(runs)
        return {site: newest_runs(states) for site, states in found.items()}

    def url_of(self, page_id: int) -> str | None:
        shards = list(self.shards)
        born = shard_of_page(page_id)
        first = shards[born : born + 1]
        found = (shard.url_of(page_id) for shard in [*first, *shards])
        return next((url for url in found if url is not None), None)

    def urls_like(self, start: str, limit: int) -> list[str]:
        every = merge(*(shard.urls_like(start, limit) for shard in self.shards))
        return list(islice((url for url, _ in groupby(every)), max(0, limit)))

    def stats(self, now: float) -> CollectionStats:
        with self._plan.steady() as plan:
            each = [shard.stats(now) for shard in self._open(plan)]
            return merged_stats(each, sites_whole=plan.keeps_sites_whole)

    def site(self, site: str) -> SiteRecord | None:
        with self._plan.steady() as plan:
            shards = self._open(plan)
            known = (shards[place].site(site) for place in plan.shards_of_site(site))
            records = [record for record in known if record is not None]
            return one_site(records) if records else None

    def save(self, record: SiteRecord) -> None:
        """Save on each shard that knows the site, or on one of its shards if none does."""
        with self._plan.steady() as plan:
            shards, places = self._open(plan), plan.shards_of_site(record.site)
            known = [place for place in places if shards[place].site(record.site) is not None]
            for place in known or [plan.home(f"http://{record.site}/")]:
                shards[place].save(record)

    def sites(self) -> Iterator[SiteRecord]:
        with self._plan.steady() as plan:
            shards, whole = self._open(plan), plan.keeps_sites_whole
        for place, shard in enumerate(shards):
            for record in shard.sites():
                if whole:
                    yield record
                elif all(other.site(record.site) is None for other in shards[:place]):
                    yield one_site([known for each in shards if (known := each.site(record.site)) is not None])

    def document(self, url: str, version: int | None = None) -> Document | None:
        return self._first(url, lambda shard: shard.document(url, version))

    def versions(self, url: str) -> list[VersionInfo]:
        return self._first(url, lambda shard: shard.versions(url) or None) or []

    def changes(self, after: int, limit: int) -> list[Change]:
        """The changes of all shards by `seq`. Followers follow each shard: the changes of another one may come late
        here."""
        return in_order([shard.changes(after, limit) for shard in self.shards], limit)

    def change_log(self, after: int, limit: int) -> list[ChangeEvent]:
        return in_order([shard.change_log(after, limit) for shard in self.logs], limit)

    def newest_seq(self) -> int:
        return max(shard.newest_seq() for shard in self.shards)

    def scan(self) -> Iterator[Document]:
        for place, shard in enumerate(self.shards):
            yield from (document for document in shard.scan() if not self._is_copy(place, document.url))

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        for place, shard in enumerate(self.shards):
            yield from (page for page in shard.sample(one_in) if not self._is_copy(place, page.url))

    def live_pages(self) -> int:
        return sum(shard.live_pages() for shard in self.shards)

    def outdated(self, hints: Sequence[ChangeHint]) -> list[PageRecord]:
        with self._plan.steady() as plan:
            shards = self._open(plan)
            by_place: defaultdict[int, list[ChangeHint]] = defaultdict(list)
            for hint in hints:
                for place in plan.places(hint.url):
                    by_place[place].append(hint)
            found = {page.url: page for place, some in by_place.items() for page in shards[place].outdated(some)}
        urls = dict.fromkeys(hint.url for hint in hints)
        return [found[url] for url in urls if url in found]

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Signals, float | None]]) -> None:
        with self._plan.steady() as plan:
            shards = self._open(plan)
            by_place: defaultdict[int, list[tuple[PageRecord, Signals, float | None]]] = defaultdict(list)
            for each in pages:
                for place in plan.places(each[0].url):
                    by_place[place].append(each)
            for place, some in by_place.items():
                shards[place].bring_forward(some)

    def _open(self, plan: ShardPlan) -> list[Shard]:
        """The shards that the plan names, opened if they are new."""
        while len(self._shards) < plan.shards and self._more is not None:
            self._shards.append(self._more(len(self._shards)))
            if self._limits is not None:
                self._limit(self._shards[-1], self._limits, plan)
            self.own(self._slices)
        return self._shards[: plan.shards]

    def _commit(self, shard: Shard, visits: Sequence[VisitResult]) -> list[bool]:
        """Number the changes after those of the other shards, so that all have one order."""
        if len(self._shards) == 1:
            return shard.commit(visits)
        self._seq = self._seq or max(each.newest_seq() for each in self._shards)
        shard.follow_seq(self._seq)
        current = shard.commit(visits)
        self._seq = max(self._seq, shard.newest_seq())
        return current

    def _first(self, url: str, ask: Callable[[Shard], T | None]) -> T | None:
        with self._plan.steady() as plan:
            shards = self._open(plan)
            answers = (ask(shards[place]) for place in plan.places(url))
            return next((answer for answer in answers if answer is not None), None)

    def _is_copy(self, place: int, url: str) -> bool:
        """Whether this page is moving, and counted at its target."""
        with self._plan.steady() as plan:
            if plan.following is None or plan.home(url) == place:
                return False
            return self._open(plan)[plan.home(url)].page(url) is not None


def _by_lease(leases: Sequence[Lease]) -> dict[int, list[int]]:
    """The positions of the leases that each shard granted."""
    places: defaultdict[int, list[int]] = defaultdict(list)
    for number, lease in enumerate(leases):
        places[shard_of_token(lease.token)].append(number)
    return places
