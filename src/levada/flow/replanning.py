"""The replanning step: does what was planned still fit the price?

A visit is planned at the price of the time. When visits get cheaper (a larger budget, the first pass over, pages
that are gone), what was planned is too late, and fetches would be left unspent until every page has had its turn.
Then all pages are planned anew, little by little; a visit is only ever brought forward.
"""

from __future__ import annotations

from itertools import islice
from math import inf

from levada.flow.storekeeper import Storekeeper
from levada.ports import Census, Clock, Notices, RevisitPolicy
from levada.records import PageRecord, Said

__all__ = ["ReplanningStep"]

_CHEAPER = 0.8  # of the price at the last pass: then another is worth it
_SLICE = 500  # pages at a time: commits of visits go in between
_WORTH_WRITING = 0.95  # of the time left: less is gained than writing costs


class ReplanningStep:
    """`pause` lies between two slices, and between two looks at the price."""

    def __init__(
        self,
        census: Census,
        notices: Notices,
        policy: RevisitPolicy,
        keeper: Storekeeper,
        clock: Clock,
        pause: float,
    ) -> None:
        self._census = census
        self._notices = notices
        self._policy = policy
        self._keeper = keeper
        self._clock = clock
        self._pause = pause

    async def run(self) -> None:
        """Until cancelled, if the policy knows a price. Once at first: at which price was planned is not kept."""
        then = inf
        while price := self._policy.price():
            if price < _CHEAPER * then:
                await self.everything()
                then = 0.0
            then = max(then, price)  # one that rose may fall again
            await self._clock.sleep(10 * self._pause)

    async def everything(self) -> int:
        """How many visits were brought forward."""
        pages = self._census.sample(1)
        moved = 0
        while part := await self._keeper.run(lambda: list(islice(pages, _SLICE))):
            sooner = [each for page in part if (each := self._sooner(page)) is not None]
            if sooner:
                await self._keeper.run(self._notices.bring_forward, sooner)
            moved += len(sooner)
            await self._clock.sleep(self._pause)
        return moved

    def _sooner(self, page: PageRecord) -> tuple[PageRecord, Said, float] | None:
        wanted = self._policy.expect(page, page.told)
        if wanted is None or page.next_visit is None or page.failures:
            return None
        left = page.next_visit - self._clock.now()
        if left <= 0 or wanted - self._clock.now() > _WORTH_WRITING * left:
            return None
        return page, Said.NOTHING, wanted
