"""What do we know of this site? A small cache over the `Sites` port, written through.

Also keeps count of a site's failures: one that keeps failing rests, longer each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container

import msgspec

from levada.flow.settings import PolitenessSettings
from levada.flow.storekeeper import Storekeeper
from levada.pages.robots import RobotsRules
from levada.ports import Sites
from levada.records import FOREVER, RobotsRecord, SiteRecord

__all__ = ["SiteBook", "is_dropped", "largest"]


def is_dropped(record: SiteRecord) -> bool:
    """Nobody wants it any more, until somebody names it again."""
    return record.rest_until >= FOREVER


def largest(*delays: float | None) -> float | None:
    """None, where nobody asks for any."""
    return max((delay for delay in delays if delay is not None), default=None)


class SiteBook:
    """`admitted` grows while the crawl runs: a record that was read before must not take an admission back."""

    def __init__(
        self,
        sites: Sites,
        keeper: Storekeeper,
        settings: PolitenessSettings,
        admitted: Container[str] = (),
        most_kept: int = 5_000,
    ) -> None:
        self._sites = sites
        self._keeper = keeper
        self._settings = settings
        self._admitted = admitted
        self._most_kept = most_kept
        self._kept: OrderedDict[str, SiteRecord] = OrderedDict()

    async def get(self, site: str) -> SiteRecord:
        record = self._kept.get(site)
        if record is None:
            stored = await self._keeper.run(self._sites.site, site)
            record = self._kept.get(site)  # somebody else may have read and changed it meanwhile
            if record is None:
                record = stored or SiteRecord(site)
                self._keep(record)
        return record

    async def put_robots(self, site: str, scheme: str, robots: RobotsRecord, delay: float | None) -> None:
        """`delay` is what this one asks for; the site is given the largest that it asks for under any scheme."""
        record = await self.get(site)
        others = tuple(entry for entry in record.robots if entry[0] != scheme)
        if robots.trouble is None:
            agent = self._settings.agent
            delay = largest(delay, *(RobotsRules.parse(other.text).delay(agent) for _, other in others))
        else:
            delay = record.delay
        await self._save(msgspec.structs.replace(record, robots=(*others, (scheme, robots)), delay=delay))

    async def answered(self, site: str) -> None:
        """The site works: its failures are forgotten. A rest that it was promised stays."""
        record = self._kept.get(site)
        if record is not None and record.failures:
            await self._save(msgspec.structs.replace(record, failures=0))

    async def failed(self, site: str, now: float) -> float | None:
        """The site did not answer; until when it rests now, if it does."""
        record = await self.get(site)
        if record.rest_until > now:
            return record.rest_until  # asked before the rest began: that says nothing new
        failures = record.failures + 1
        if failures < self._settings.rest_after:
            self._keep(msgspec.structs.replace(record, failures=failures))
            return None
        return await self._rest(record, failures, now + self._rest_seconds(failures))

    async def told_to_wait(self, site: str, until: float) -> None:
        """Retry-After, as the site said."""
        record = await self.get(site)
        await self._rest(record, record.failures, max(until, record.rest_until))

    async def drop(self, site: str) -> None:
        """Nobody wants it any more: its pages stay, and are not visited."""
        record = await self.get(site)
        await self._save(msgspec.structs.replace(record, admitted=False, rest_until=FOREVER))

    async def take_up(self, site: str) -> None:
        """It is wanted after all."""
        record = await self.get(site)
        if is_dropped(record):
            await self._save(msgspec.structs.replace(record, rest_until=0.0))

    def _rest_seconds(self, failures: int) -> float:
        doublings = min(failures - self._settings.rest_after, 30)
        return float(min(self._settings.rest * 2**doublings, self._settings.max_rest))

    async def _rest(self, record: SiteRecord, failures: int, until: float) -> float:
        await self._save(msgspec.structs.replace(record, failures=failures, rest_until=until))
        return until

    async def _save(self, record: SiteRecord) -> None:
        if not record.admitted and record.site in self._admitted:
            record = msgspec.structs.replace(record, admitted=True)
        self._keep(record)
        await self._keeper.run(self._sites.save, record)

    def _keep(self, record: SiteRecord) -> None:
        self._kept[record.site] = record
        self._kept.move_to_end(record.site)
        if len(self._kept) > self._most_kept:
            self._kept.popitem(last=False)
