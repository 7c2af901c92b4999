"""The hearing step: what sitemaps and feeds told in, some pages due earlier out.

How far the teller is believed is the policy's business; the store only ever brings a visit forward.
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.flow.storekeeper import Storekeeper
from levada.ports import Notices, RevisitPolicy
from levada.records import Notice

__all__ = ["HearingStep"]

_SLICE = 500  # pages at a time: commits of visits go in between


class HearingStep:
    def __init__(self, notices: Notices, policy: RevisitPolicy, keeper: Storekeeper) -> None:
        self._notices = notices
        self._policy = policy
        self._keeper = keeper

    async def __call__(self, told: Sequence[Notice]) -> int:
        """How many pages were told of that we hold an older version of."""
        heard = 0
        for start in range(0, len(told), _SLICE):
            part = told[start : start + _SLICE]
            said = {notice.url: notice.said for notice in part}
            pages = await self._keeper.run(self._notices.outdated, part)
            expected = [
                (page, said[page.url], self._policy.expect(page, page.told | said[page.url])) for page in pages
            ]
            if expected:
                await self._keeper.run(self._notices.bring_forward, expected)
            heard += len(expected)
        return heard
