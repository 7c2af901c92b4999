"""Replanning: brings planned visits forward when visits get cheaper.

A visit is planned at the current price. When the price falls (a larger budget, the end of the first pass, pages
that are gone), the planned visits are too late, and fetches would be left over until every page was visited once
more. Then all pages are planned again, in small slices; a visit is only ever brought forward.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from math import inf

from levada.core.protocols import ChangeHints, Clock, PageSample, RevisitPolicy
from levada.core.records import PageRecord, Signals
from levada.crawl.executor import StoreExecutor

_CHEAPER = 0.8  # share of the price at the last pass that makes another worth it
_SLICE = 500  # pages at a time: commits of visits go in between
_WORTH_WRITING = 0.95  # share of the time left: a smaller gain is not worth the write


@dataclass
class ReplanningStep:
    """Replans all pages when the price has fallen, with a `pause` in seconds between two slices."""

    page_sample: PageSample
    hints: ChangeHints
    policy: RevisitPolicy
    executor: StoreExecutor
    clock: Clock
    pause: float

    async def run(self) -> None:
        """Replan until cancelled, if the policy has a price.

        The first pass comes at once, because the price at which pages were planned is not stored.
        """
        then = inf
        while price := self.policy.price():
            if price < _CHEAPER * then:
                await self.everything()
                then = 0.0
            then = max(then, price)  # one that rose may fall again
            await self.clock.sleep(10 * self.pause)

    async def everything(self) -> int:
        """Replan all pages; returns how many visits were brought forward."""
        pages = self.page_sample.sample(1)
        moved = 0
        while part := await self.executor.run(lambda: list(islice(pages, _SLICE))):
            sooner = [each for page in part if (each := self._sooner(page)) is not None]
            if sooner:
                await self.executor.run(self.hints.bring_forward, sooner)
            moved += len(sooner)
            await self.clock.sleep(self.pause)
        return moved

    def _sooner(self, page: PageRecord) -> tuple[PageRecord, Signals, float] | None:
        wanted = self.policy.visit_after_hint(page, page.told)
        if wanted is None or page.next_visit is None or page.failures:
            return None
        left = page.next_visit - self.clock.now()
        if left <= 0 or wanted - self.clock.now() > _WORTH_WRITING * left:
            return None
        return page, Signals.NOTHING, wanted
