"""Checks: the pages that a user wants visited now, whatever their plan says.

A few pages that are named go before all others: each is leased by its address and put in front. Pages by the
thousand, of a site or of all, are made due before every other page, some in each transaction, and come by the
ordinary way. Politeness, robots.txt and the budget hold for both.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable

from levada.core.errors import StoreAway
from levada.core.protocols import Clock, Frontier
from levada.core.records import Lease, PageRecord, PlanSelection, Signals
from levada.crawl.commits import CrawlPorts
from levada.crawl.executor import StoreExecutor
from levada.crawl.in_flight import InFlightLeases
from levada.crawl.politeness import PolitenessQueue
from levada.crawl.sites import SiteCache
from levada.pages.urls import site_of

_BATCH = 500  # pages that are brought forward in a transaction
_TRIED_AT_ONCE = 64  # pages that are looked at in one go
_IN_LINE = 8  # pages of a site that are leased at the same time: their leases last until their turn
_GIVEN_UP = 600.0  # seconds after which a page that cannot be leased is left to its plan, which is now


class CheckStep:
    """The named pages that are not leased yet. `alone` says that no other process leases pages of the collection."""

    def __init__(
        self,
        ports: CrawlPorts,
        executor: StoreExecutor,
        politeness_queue: PolitenessQueue,
        sites: SiteCache,
        open_leases: InFlightLeases,
        *,
        lease_seconds: float,
        delay: float,
        alone: bool,
        ask_robots_anew: Callable[[str], None],
        owns: Callable[[str], bool] = lambda site: True,
    ) -> None:
        self._frontier: Frontier = ports.frontier
        self._hints = ports.hints
        self._clock: Clock = ports.clock
        self._executor = executor
        self._politeness_queue = politeness_queue
        self._sites = sites
        self._open = open_leases
        self._lease_seconds = lease_seconds
        self.delay = delay
        self._alone = alone
        self._ask_robots_anew = ask_robots_anew
        self._owns = owns
        self._began = ports.clock.now()
        self._wanted: OrderedDict[str, float] = OrderedDict()  # URL, and since when
        self._leased: dict[int, str] = {}  # pages that are under way, and their sites
        self.progress_at = self._began  # when a page was leased last

    def __len__(self) -> int:
        """How many pages are neither visited nor on their way."""
        return len(self._wanted)

    async def want(self, urls: Iterable[str], *, keep: bool = True) -> None:
        """Take up these pages, which are known. Their sites are tried again, even in a backoff after failures.

        With `keep` they are due from now on, so that the wish outlives this process.
        """
        known = [page for url in urls if (page := await self._page(url)) is not None]
        await self._try_sites({page.site for page in known})
        now = self._clock.now()
        for page in known:
            self._wanted.setdefault(page.url, now)
        visited = [page for page in known if page.visits]
        if visited and keep:
            due = [(page, Signals.NOTHING, now) for page in visited]
            await self._executor.run(self._hints.bring_forward, due)

    async def want_all(self, site: str, at: float, between: Callable[[], Awaitable[None]]) -> int:
        """Make all pages of a site, or with "" of all sites, due before every other one; returns how many.

        New pages are due anyway. `between` is called after each transaction.
        """
        first = await self._first_due(at)
        if site:
            await self._try_sites([site])
        count = 0
        selection, after = PlanSelection(site, later_than=first), 0
        while pages := await self._executor.run(self._frontier.planned, selection, after, _BATCH):
            after = pages[-1].id
            await self._executor.run(self._hints.bring_forward, [(page, Signals.NOTHING, first) for page in pages])
            count += len(pages)
            await between()
        return count

    async def lease(self) -> list[Lease]:
        """The wanted pages that can be leased now. Those that this process holds already move to the front."""
        self._leased = {id: site for id, site in self._leased.items() if self._open.holds(id)}
        in_line, waiting = Counter(self._leased.values()), set[str]()
        now, leases = self._clock.now(), list[Lease]()
        for url, since in list(self._wanted.items())[: _TRIED_AT_ONCE * 4]:
            site = site_of(url)
            if not self._owns(site):  # visited pages are due now, and new ones are: their scheduler takes them
                del self._wanted[url]
                continue
            if site in waiting or in_line[site] >= _IN_LINE or len(leases) >= _TRIED_AT_ONCE:
                continue
            try:
                page = await self._page(url)
                lease = await self._lease(page, now) if page is not None else None
            except StoreAway:
                waiting.add(site)
                continue
            if page is None or lease is not None or self._open.holds(page.id) or now > since + _GIVEN_UP:
                del self._wanted[url]
            else:
                waiting.add(site)  # it has its turn later
            if lease is not None:
                in_line[site] += 1
                self._leased[lease.page.id] = site
                leases.append(lease)
                self.progress_at = now
        return leases

    async def _lease(self, page: PageRecord, now: float) -> Lease | None:
        if self._open.holds(page.id):
            self._politeness_queue.hurry(page.id, page.site)
            return None
        delay = (await self._sites.get(page.site)).delay or 0.0
        # No request of a process before this one can be so late that two follow too closely: ours are spaced here.
        out_of_turn = self._alone and now - self._began > max(delay, self.delay)
        return await self._executor.run(
            self._frontier.lease_url, page.url, now, self._lease_seconds, out_of_turn=out_of_turn
        )

    async def _page(self, url: str) -> PageRecord | None:
        return await self._executor.run(self._frontier.page, url)

    async def _first_due(self, at: float) -> float:
        """A time before the next visit of every page that is not wanted."""
        next_due = (await self._executor.run(self._frontier.stats, at)).next_due
        return min(at, at if next_due is None else next_due) - 1.0

    async def _try_sites(self, sites: Iterable[str]) -> None:
        for site in sites:
            await self._sites.try_again(site, self._clock.now())
            record = await self._sites.get(site)
            if record.rest_until <= self._clock.now():
                self._politeness_queue.lift(site, self._clock.now())
            self._ask_robots_anew(site)
