"""Catalog worker: decides visits and commits them, those of several messages at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from levada.core.errors import StoreAway
from levada.core.records import VisitResult
from levada.core.settings import Settings
from levada.core.site_rules.pace import SitePaces
from levada.core.site_rules.rules import SiteRules
from levada.crawl.commits import CommitPorts, Commits
from levada.crawl.distributed.messages import ToStore, read_message
from levada.crawl.executor import StoreExecutor
from levada.crawl.hooks import PageHooks
from levada.crawl.link_filter import LinkFilter
from levada.crawl.sites import SiteLimits

_SITE_SECONDS = 60.0  # how long the record of a site is cached


class CatalogWorker:
    """Decides visits and commits them under their leases. `run` must run at the same time."""

    def __init__(
        self,
        ports: CommitPorts,
        settings: Settings,
        collection: str,
        executor: StoreExecutor,
        hooks: PageHooks | None = None,
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._collection = collection
        self._executor = executor
        self._link_filter = LinkFilter(settings.crawl, (), rules=SiteRules(settings.site))
        self._commits = Commits(
            ports, settings, executor, self._link_filter, self._committed, hooks, gathers=lambda: self._deciding > 0
        )
        self._limits = SiteLimits(SitePaces.of(settings), ports.policy)
        self._sites_until: dict[str, float] = {}
        self._waiting: dict[int, asyncio.Future[VisitResult | None]] = {}
        self._in_hand = 0  # messages
        self._deciding = 0  # those of them whose visits are not all decided
        self.pages = 0

    @property
    def used(self) -> float:
        """The share of the worker that is in use now."""
        return 1.0 if self._in_hand else 0.0

    def stop(self) -> None:
        """Nothing to do: what it has is committed."""

    async def run(self) -> None:
        await self._commits.run()

    def settings_changed(self, settings: Settings) -> None:
        """Decide by these from now on."""
        self._settings = settings
        self._link_filter.settings_changed(settings.crawl, SiteRules(settings.site))
        self._commits.settings_changed(settings)
        self._limits.paces = SitePaces.of(settings)

    async def __call__(self, body: bytes, again: bool) -> None:
        """Commit a message; returns when each visit is committed, or refused because another worker was first."""
        message = read_message(ToStore, body, self._collection)
        if message is None:
            return
        self._in_hand += 1
        try:
            waiting = await self._decide(message)
            for committed in await asyncio.gather(*waiting):
                if committed is not None and (work := self._commits.follow_up(committed, self._ports.clock.now())):
                    await work()
        finally:
            self._in_hand -= 1

    async def _decide(self, message: ToStore) -> list[asyncio.Future[VisitResult | None]]:
        """Decide the visits of a message and put them into the next commit, which waits for the others in hand."""
        self._deciding += 1
        try:
            results = []
            for visited in message.visits:
                await self._learn_site(visited.fetched.lease.page.site)
                results.append(await self._commits.decide(visited))
        finally:
            self._deciding -= 1
            self._commits.look_again()
        return [self._commit(each) for each in results]

    async def _learn_site(self, site: str) -> None:
        """Read the scope and the delay of a site, which other processes may have changed."""
        now = self._ports.clock.now()
        if self._sites_until.get(site, 0.0) > now:
            return
        if len(self._sites_until) > 10_000:
            self._sites_until.clear()
        self._sites_until[site] = now + _SITE_SECONDS
        try:
            record = await self._executor.run(self._ports.sites.site, site)
        except StoreAway:  # its visits are not stored either
            return
        if record is None:
            return
        if record.dropped:
            self._link_filter.admitted.discard(site)
        elif record.admitted:
            self._link_filter.admitted.add(site)
        self._limits.learn(site, record.delay)

    def _commit(self, result: VisitResult) -> asyncio.Future[VisitResult | None]:
        """Commit a result; gives what was committed, which differs for a duplicate, or None.

        Two of one lease at the same time are one commit.
        """
        token = result.lease.token
        if token not in self._waiting:
            self._waiting[token] = asyncio.get_running_loop().create_future()
            self._commits.put(result)
        return self._waiting[token]

    def _committed(self, visits: Sequence[VisitResult], accepted: Sequence[bool]) -> None:
        for result, is_stored in zip(visits, accepted, strict=True):
            waiter = self._waiting.pop(result.lease.token, None)
            if waiter is not None and not waiter.done():
                waiter.set_result(result if is_stored else None)
            self.pages += is_stored
