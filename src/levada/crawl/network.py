"""Network watch: pauses a crawl while the network is down, and repairs what was charged for it.

While nothing can be reached no visit begins, and no failure counts against a page or a site. Probes ask sites that
used to answer for their robots.txt; the first answer ends the outage. Then the pages that had failed before it was
recognised are due again, and their sites start anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec.structs import replace

from levada.core.errors import StoreAway
from levada.core.records import PageRecord, Signals
from levada.core.site_rules.rules import NO_RULES, SiteRules
from levada.crawl.commits import CrawlPorts
from levada.crawl.executor import StoreExecutor
from levada.crawl.outage import UNREACHED, OutageRule
from levada.crawl.politeness import PolitenessQueue
from levada.crawl.sites import SiteCache
from levada.crawl.visits import Fetched, request_for
from levada.pages.urls import origin_of, site_of

log = logging.getLogger(__name__)

_MOST_CHARGED = 10_000  # pages that are kept to be repaired
_SITES_READ = 1_000  # in search of some that have answered
_SITES_WANTED = 20
_AT_ONCE = 500  # pages in a transaction
_IN_VAIN = 3  # probes after which a crawl that is to end gives up


class NetworkWatch:
    """Takes the end of each exchange. `down` says since when nothing answers; None while something does.

    `on_down` gives back what waits to be fetched, `on_change` is called when an outage begins or ends.
    """

    def __init__(
        self,
        ports: CrawlPorts,
        executor: StoreExecutor,
        *,
        speed: float,
        politeness_queue: PolitenessQueue,
        sites: SiteCache,
        due_again: Callable[[], float],
        ask_robots_anew: Callable[[str], None],
        on_down: Callable[[], Awaitable[None]],
        on_change: Callable[[], None],
        rules: Callable[[], SiteRules] = lambda: NO_RULES,
        is_open: Callable[[str], bool] = lambda site: True,
    ) -> None:
        self._ports = ports
        self._executor = executor
        self._politeness_queue = politeness_queue
        self._sites = sites
        self._speed = speed
        self._due_again = due_again
        self._ask_robots_anew = ask_robots_anew
        self._on_down = on_down
        self._on_change = on_change
        self._rules = rules
        self._is_open = is_open
        self._rule = OutageRule()
        self._charged: OrderedDict[int, PageRecord] = OrderedDict()  # failed since something was reached last
        self._unreached: set[str] = set()  # sites, since then
        self._looking = asyncio.Lock()
        self._has_asked_the_store = False
        self._begun = asyncio.Event()

    @property
    def down(self) -> float | None:
        return self._rule.since

    @property
    def gives_up(self) -> bool:
        """Whether a crawl that is to end should not wait any longer."""
        return self._rule.since is not None and self._rule.probes >= _IN_VAIN

    async def counts(self, fetched: Fetched) -> bool:
        """Take the end of a visit; False if it says nothing about its page and site, because the network is down."""
        response, page = fetched.response, fetched.lease.page
        reason = fetched.refused if response is None else response.reason
        if response is not None and response.status:
            if self._rule.reached(origin_of(page.url)):
                await self._end()
            self._forget()
            return True
        if reason not in UNREACHED:
            return True
        if len(self._unreached) < _MOST_CHARGED:
            self._unreached.add(page.site)
        if page.history:
            self._rule.know(origin_of(page.url))  # it answered at some time
        self._rule.failed(fetched.at)
        if self._rule.suspicious:
            async with self._looking:  # one looks into it, and the others wait for the answer
                if self._rule.suspicious:
                    await self._look()
        if self._rule.since is not None:
            return False
        self.charge(page)
        return True

    def charge(self, page: PageRecord) -> None:
        """Note that a visit without an answer is committed all the same: the end of an outage repairs it."""
        self._charged[page.id] = replace(page, visits=page.visits + 1)
        if len(self._charged) > _MOST_CHARGED:
            self._charged.popitem(last=False)

    async def run(self) -> None:
        """Probe during outages until cancelled."""
        while True:
            await self._begun.wait()
            self._begun.clear()
            while self._rule.since is not None:
                await self._ports.clock.sleep(self._rule.pause(self._ports.clock.now()) * self._speed)
                if self._rule.since is not None and not await self._probe():
                    self._rule.probed_in_vain()
                    self._on_change()

    async def _look(self) -> None:
        """Find out whether the network is down: nothing was reached for a while."""
        if self._rule.few and not self._has_asked_the_store:
            self._has_asked_the_store = True
            for origin in await self._executor.run(self._origins_that_answered):
                self._rule.know(origin)
        if await self._probe():
            self._forget()  # the network works: those failures are of their sites
        elif self._rule.probed_in_vain():
            only = "or its only site" if self._rule.few else "as none of the sites that used to answer does"
            log.warning("nothing answers: the network seems to be down, %s; no page is charged for it", only)
            await self._on_down()
            self._begun.set()
            self._on_change()

    def _origins_that_answered(self) -> list[str]:
        found: list[str] = []
        for count, record in enumerate(self._ports.sites.sites()):
            read = [scheme for scheme, robots in record.robots if robots.trouble is None]
            if read and not (record.dropped or record.failures):
                found.append(f"{read[0]}://{record.site}")
            if count >= _SITES_READ or len(found) >= _SITES_WANTED:
                break
        return found

    async def _probe(self) -> bool:
        """Whether one of the targets answers. Each is asked within its delay."""
        known = self._rule.targets()
        targets = [origin for origin in known if self._is_open(site_of(origin))]
        if not targets:
            if known:  # outside their active hours: visits to others find out
                await self._give_up_probing()
            return bool(known)
        clock, queue = self._ports.clock, self._politeness_queue
        earliest = {origin: queue.next_start(site_of(origin)) for origin in targets}
        if (wait := min(earliest.values()) - clock.now()) > 0:
            await clock.sleep(wait)
        ready = [origin for origin in targets if earliest[origin] <= clock.now() and self._is_open(site_of(origin))]
        for origin in ready:
            queue.spend(site_of(origin), clock.now())
        answers = await asyncio.gather(*(self._answers(origin) for origin in ready))
        reached = next((origin for origin, answered in zip(ready, answers, strict=True) if answered), None)
        if reached is None:
            return False
        if self._rule.reached(reached):
            await self._end()
        return True

    async def _give_up_probing(self) -> None:
        if self._rule.since is not None:
            self._rule.end()
            await self._end()

    async def _answers(self, origin: str) -> bool:
        try:
            url = f"{origin}/robots.txt"
            request = request_for(url, self._rules().visit_rule(url).request, keep_bytes=1)
            response = await self._ports.fetcher.fetch(request)
        except Exception:
            log.exception("probing %s", origin)
            return False
        return response.status > 0

    async def _end(self) -> None:
        """Go on after an outage."""
        charged = await self.undo()
        log.info("the network is back: %d pages that had failed are due again", charged)
        self._on_change()

    async def undo(self) -> int:
        """Undo what the outage did to pages and sites before it was recognised; returns how many pages that were."""
        charged, sites = list(self._charged.values()), sorted(self._unreached)
        self._forget()
        for site in sites:
            with suppress(StoreAway):
                await self._sites.forgive(site)
            self._ask_robots_anew(site)
            self._politeness_queue.lift(site, self._ports.clock.now())
        at = self._due_again()
        for start in range(0, len(charged), _AT_ONCE):
            due = [(page, Signals.NOTHING, at) for page in charged[start : start + _AT_ONCE]]
            await self._executor.run(self._ports.hints.bring_forward, due)
        return len(charged)

    def _forget(self) -> None:
        self._charged.clear()
        self._unreached.clear()
