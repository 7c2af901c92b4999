"""A collection over several shards, as one store.

A query for one URL goes to one shard, or to two while pages move. A query for all pages goes to every shard at the
same time. While a shard is away (`RemoteShard`), queries for all pages are answered without it, its own pages raise
`StoreAway`, and visits to them are not stored: they are leased again when it is back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from heapq import merge
from itertools import groupby, islice
from math import ceil
from operator import attrgetter
from threading import Lock
from typing import ClassVar, TypeVar, cast

from msgspec import structs

from levada.core.errors import StoreAway, UsageError
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
from levada.store.base import Capability, Shard, ShardAway, Sliced, StoreLimits, WithLimits
from levada.store.rules import shard_of_page, shard_of_token, warn_of_lifted
from levada.store.sharded.combining import (
    Outboxes,
    addressed,
    in_order,
    lease_from,
    merged_stats,
    one_site,
    place_to_hold,
)
from levada.store.sharded.forgetting import ShardedForgetting
from levada.store.sharded.plan import PlanSource, ShardPlan
from levada.store.sharded.remote import RemoteShard, answers, begin, remote_shards

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
        self._outboxes = Outboxes()
        self._opening = Lock()

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
        """The shards, and former shards for their old entries of the change log."""
        with self._plan.steady() as plan:
            self._open(plan)
        return tuple(self._shards)

    @property
    def away(self) -> dict[int, ShardAway]:
        with self._plan.steady() as plan:
            holders = plan.holders
        remote = remote_shards(self._shards)
        return {number: away for number, shard in remote.items() if number in holders and (away := shard.away)}

    @property
    def format(self) -> int:
        return next(iter(answers(self._numbered, lambda _, shard: shard.format).values()))

    def close(self) -> None:
        for shard in self._shards:
            shard.close()
        self._plan.close()

    def check(self) -> None:
        for shard in self._shards:
            shard.check()

    def deliver(self) -> int:
        """Deliver what an earlier process left in the outboxes."""
        with self._steady() as (plan, shards):
            return self._outboxes.deliver(plan, shards)

    def add(
        self, found: Sequence[FoundUrl], refused: Sequence[Refusal], now: float, *, found_on: int | None = None
    ) -> int:
        """`StoreAway` if a shard is away that some of these belong to; the others are added."""
        with self._steady() as (plan, shards):
            if found_on is None:
                warn_of_lifted(self.lift(found))
            pages: defaultdict[int, list[FoundUrl]] = defaultdict(list)
            refusals: defaultdict[int, list[Refusal]] = defaultdict(list)
            trouble: StoreAway | None = None
            for each in found:
                try:
                    place = place_to_hold(each, plan, shards)
                except StoreAway as error:
                    trouble = error
                    continue
                if place is not None:
                    pages[place].append(each)
            for refusal in refused:
                refusals[plan.shards_of_site(refusal.site)[0]].append(refusal)

            def ask(place: int, shard: Shard) -> int:
                return shard.add(pages[place], refusals[place], now, found_on=found_on)

            added = answers({place: shards[place] for place in sorted({*pages, *refusals})}, ask, some=False)
            if trouble is not None:
                raise trouble
            return sum(added.values())

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        with self._steady() as (_, shards):
            return lease_from(
                dict(enumerate(shards)), now, limit, lambda shard, count: shard.lease(now, count, seconds, due)
            )

    def lease_url(self, url: str, now: float, seconds: float, *, out_of_turn: bool = False) -> Lease | None:
        return self._first(url, lambda shard: shard.lease_url(url, now, seconds, out_of_turn=out_of_turn))

    def planned(self, selection: PlanSelection, after: int, limit: int) -> list[PageRecord]:
        every = self._each(lambda _, shard: shard.planned(selection, after, limit))
        found = merge(*every.values(), key=attrgetter("id"))
        return [next(copies) for _, copies in islice(groupby(found, attrgetter("id")), max(0, limit))]

    def count_planned(self, selection: PlanSelection, now: float) -> int:
        return sum(self._each(lambda _, shard: shard.count_planned(selection, now)).values())

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        """A visit to a page of a shard that is away is not stored. Its page is leased again."""
        with self._steady() as (plan, shards):
            current = [False] * len(visits)
            by_place = _by_lease([result.lease for result in visits])
            batches = {
                place: [addressed(visits[number], plan, place) for number in numbers]
                for place, numbers in by_place.items()
                if place < len(shards)
            }
            for place, stored in self._commit({place: shards[place] for place in batches}, batches).items():
                for number, is_current in zip(by_place[place], stored, strict=True):
                    current[number] = is_current
            if len(shards) > 1:
                self._outboxes.deliver(plan, shards)
            return current

    def release(self, leases: Sequence[Lease]) -> None:
        """The lease of a page on a shard that is away ends by itself."""
        with self._steady() as (_, shards):
            places = {place: numbers for place, numbers in _by_lease(leases).items() if place < len(shards)}
            with suppress(StoreAway):
                answers(
                    {place: shards[place] for place in places},
                    lambda place, shard: shard.release([leases[number] for number in places[place]]),
                )

    def forget_leases(self) -> None:
        self._each(lambda _, shard: shard.forget_leases(), some=False)

    def limit_waits(self, now: float, latest: float) -> int:
        return sum(self._each(lambda _, shard: shard.limit_waits(now, latest), some=False).values())

    def page(self, url: str) -> PageRecord | None:
        return self._first(url, lambda shard: shard.page(url))

    def originals(self, texts: Sequence[PageText]) -> list[str | None]:
        """Of a site on several shards, the page on the first of them."""
        with self._steady() as (plan, shards):
            wanted: defaultdict[int, list[int]] = defaultdict(list)
            for number, text in enumerate(texts):
                for place in plan.shards_of_site(text.site):
                    wanted[place].append(number)
            there = self._among(
                shards, wanted, lambda place, shard: shard.originals([texts[number] for number in wanted[place]])
            )
            found: dict[int, str] = {}
            for place in sorted(there):
                for number, url in zip(wanted[place], there[place], strict=True):
                    if url is not None:
                        found.setdefault(number, url)
        return [found.get(number) for number in range(len(texts))]

    def near_runs(self, sites: Sequence[str]) -> dict[str, bytes]:
        with self._steady() as (plan, shards):
            wanted: defaultdict[int, list[str]] = defaultdict(list)
            for site in sites:
                for place in plan.shards_of_site(site):
                    wanted[place].append(site)
            there = self._among(shards, wanted, lambda place, shard: shard.near_runs(wanted[place]))
            found: defaultdict[str, list[bytes]] = defaultdict(list)
            for states in there.values():
                for site, runs in states.items():
                    found[site].append(runs)
        return {site: newest_runs(states) for site, states in found.items()}

    def url_of(self, page_id: int) -> str | None:
        shards = list(self.shards)
        born = shard_of_page(page_id)
        return _first_answer([*shards[born : born + 1], *shards], lambda shard: shard.url_of(page_id))

    def urls_like(self, start: str, limit: int) -> list[str]:
        every = merge(*self._each(lambda _, shard: shard.urls_like(start, limit)).values())
        return list(islice((url for url, _ in groupby(every)), max(0, limit)))

    def stats(self, now: float) -> CollectionStats:
        each = self._each(lambda _, shard: shard.stats(now))
        with self._plan.steady() as plan:
            return merged_stats(list(each.values()), sites_whole=plan.keeps_sites_whole)

    def site(self, site: str) -> SiteRecord | None:
        with self._steady() as (plan, shards):
            places = {place: shards[place] for place in plan.shards_of_site(site)}
            known = answers(places, lambda _, shard: shard.site(site))
            records = [record for record in known.values() if record is not None]
            if not records and len(known) < len(places):
                answers(places, lambda _, shard: shard.site(site), some=False)  # says which one is away
            return one_site(records) if records else None

    def save(self, record: SiteRecord) -> None:
        """Save on each shard that knows the site, or on one of its shards if none does."""
        with self._steady() as (plan, shards):
            places = {place: shards[place] for place in plan.shards_of_site(record.site)}
            asked = answers(places, lambda _, shard: shard.site(record.site))
            known = [place for place, there in asked.items() if there is not None]
            wanted = known or [plan.home(f"http://{record.site}/")]
            answers({place: shards[place] for place in wanted}, lambda _, shard: shard.save(record), some=False)

    def sites(self) -> Iterator[SiteRecord]:
        """Without those of shards that are away."""
        with self._plan.steady() as plan:
            shards, whole = list(self._open(plan)), plan.keeps_sites_whole
        for place, shard in enumerate(shards):
            with suppress(StoreAway):
                for record in shard.sites():
                    if whole:
                        yield record
                    elif all(_site_on(other, record.site) is None for other in shards[:place]):
                        yield one_site([known for each in shards if (known := _site_on(each, record.site))])

    def document(self, url: str, version: int | None = None) -> Document | None:
        return self._first(url, lambda shard: shard.document(url, version))

    def versions(self, url: str) -> list[VersionInfo]:
        return self._first(url, lambda shard: shard.versions(url) or None) or []

    def changes(self, after: int, limit: int) -> list[Change]:
        """The changes of all shards by `seq`. Followers follow each shard: the changes of another one may come late
        here."""
        every = self._each(lambda _, shard: shard.changes(after, limit), some=False)
        return in_order(list(every.values()), limit)

    def change_log(self, after: int, limit: int) -> list[ChangeEvent]:
        logs = dict(enumerate(self.logs))
        every = answers(logs, lambda _, shard: shard.change_log(after, limit), some=False)
        return in_order(list(every.values()), limit)

    def newest_seq(self) -> int:
        return max(self._each(lambda _, shard: shard.newest_seq(), some=False).values())

    def scan(self) -> Iterator[Document]:
        for place, shard in enumerate(self.shards):
            yield from (document for document in shard.scan() if not self._is_copy(place, document.url))

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        """Without those of shards that are away."""
        for place, shard in enumerate(self.shards):
            with suppress(StoreAway):
                yield from (page for page in shard.sample(one_in) if not self._is_copy(place, page.url))

    def live_pages(self) -> int:
        return sum(self._each(lambda _, shard: shard.live_pages()).values())

    def outdated(self, hints: Sequence[ChangeHint]) -> list[PageRecord]:
        with self._steady() as (plan, shards):
            by_place: defaultdict[int, list[ChangeHint]] = defaultdict(list)
            for hint in hints:
                for place in plan.places(hint.url):
                    by_place[place].append(hint)
            there = self._among(shards, by_place, lambda place, shard: shard.outdated(by_place[place]))
        found = {page.url: page for pages in there.values() for page in pages}
        urls = dict.fromkeys(hint.url for hint in hints)
        return [found[url] for url in urls if url in found]

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Signals, float | None]]) -> None:
        """Pages of a shard that is away keep their plan."""
        with self._steady() as (plan, shards):
            by_place: defaultdict[int, list[tuple[PageRecord, Signals, float | None]]] = defaultdict(list)
            for each in pages:
                for place in plan.places(each[0].url):
                    by_place[place].append(each)
            self._among(shards, by_place, lambda place, shard: shard.bring_forward(by_place[place]))

    @contextmanager
    def _steady(self) -> Iterator[tuple[ShardPlan, list[Shard]]]:
        """The plan, and its shards. A write that goes on when nobody waits for it any more keeps the plan steady."""
        with self._plan.steady() as plan:
            try:
                yield plan, self._open(plan)
            finally:
                for shard in remote_shards(self._shards).values():
                    shard.keep(self._hold_plan)

    def _hold_plan(self) -> Callable[[], None]:
        hold = ExitStack()
        hold.enter_context(self._plan.steady())
        return hold.close

    def _each(self, ask: Callable[[int, Shard], T], *, some: bool = True) -> dict[int, T]:
        with self._steady() as (_, shards):
            return answers(dict(enumerate(shards)), ask, some=some)

    def _among(
        self, shards: Sequence[Shard], wanted: Mapping[int, object], ask: Callable[[int, Shard], T]
    ) -> dict[int, T]:
        """The answers of those of the wanted shards that answer."""
        with suppress(StoreAway):
            return answers({place: shards[place] for place in wanted}, ask)
        return {}

    def _open(self, plan: ShardPlan) -> list[Shard]:
        """The shards that the plan names, opened if they are new."""
        with self._opening:
            while len(self._shards) < plan.shards and self._more is not None:
                self._shards.append(self._more(len(self._shards)))
                if self._limits is not None:
                    self._limit(self._shards[-1], self._limits, plan)
                self.own(self._slices)
        return self._shards[: plan.shards]

    def _commit(
        self, shards: Mapping[int, Shard], batches: Mapping[int, Sequence[VisitResult]]
    ) -> dict[int, list[bool]]:
        """Number the changes after those of the other shards, so that all have one order."""
        if len(self._shards) > 1 and not self._seq:
            with suppress(StoreAway):
                self._seq = max(answers(self._numbered, lambda _, shard: shard.newest_seq()).values())
        # Shards on servers commit at the same time, each in a range of its own.
        bases: dict[int, int] = {}
        base = self._seq
        for place, shard in shards.items():
            if isinstance(shard, RemoteShard):
                bases[place] = base
                base += len(batches[place])

        def ask(place: int, shard: Shard) -> tuple[list[bool], int]:
            if len(self._shards) > 1:
                shard.follow_seq(bases.get(place, self._seq))
            stored = shard.commit(batches[place])
            newest = shard.newest_seq()
            if place not in bases:  # the next one is asked after this one
                self._seq = max(self._seq, newest)
            return stored, newest

        done: dict[int, tuple[list[bool], int]] = {}
        with suppress(StoreAway):
            done = answers(shards, ask)
        self._seq = max([self._seq, *(newest for _, newest in done.values())])
        return {place: stored for place, (stored, _) in done.items()}

    def _first(self, url: str, ask: Callable[[Shard], T | None]) -> T | None:
        with self._steady() as (plan, shards):
            return _first_answer([shards[place] for place in plan.places(url)], ask)

    def _is_copy(self, place: int, url: str) -> bool:
        """Whether this page is moving, and counted at its target."""
        with self._plan.steady() as plan:
            if plan.following is None or plan.home(url) == place:
                return False
            return self._open(plan)[plan.home(url)].page(url) is not None


def _first_answer(shards: Sequence[Shard], ask: Callable[[Shard], T | None]) -> T | None:
    """The first answer that is one. If there is none, a shard that is away may have had it."""
    trouble: StoreAway | None = None
    for shard in shards:
        try:
            answer = begin(shard, ask)()
        except StoreAway as error:
            trouble = trouble or error
            continue
        if answer is not None:
            return answer
    if trouble is not None:
        raise trouble
    return None


def _site_on(shard: Shard, site: str) -> SiteRecord | None:
    with suppress(StoreAway):
        return shard.site(site)
    return None


def _by_lease(leases: Sequence[Lease]) -> dict[int, list[int]]:
    """The positions of the leases that each shard granted."""
    places: defaultdict[int, list[int]] = defaultdict(list)
    for number, lease in enumerate(leases):
        places[shard_of_token(lease.token)].append(number)
    return places
