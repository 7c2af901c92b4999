"""Which pages are to be looked at again at once, because of what was found elsewhere?

Those that were set aside for a canonical address that holds nothing; and where a page that was stored leads to
another one, that other one, if it had led away itself: the content may have moved there.
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.flow.stand_ins import StandIns
from levada.flow.storekeeper import Storekeeper
from levada.ports import Frontier, Notices
from levada.records import PageRecord, PageState, Said, Settled

__all__ = ["SecondLooks"]

_HOLDS_NOTHING = frozenset({PageState.ELSEWHERE, PageState.GONE, PageState.REFUSED, PageState.FAILED})


class SecondLooks:
    def __init__(self, frontier: Frontier, notices: Notices, keeper: Storekeeper, stand_ins: StandIns) -> None:
        self._frontier = frontier
        self._notices = notices
        self._keeper = keeper
        self._stand_ins = stand_ins

    def after(self, settled: Settled) -> tuple[list[PageRecord], str | None]:
        """Pages to look at again after this commit, and an address that may be one."""
        was = settled.lease.page
        moved = was.version > 0 and was.state is PageState.LIVE
        return self._stand_ins.after(settled), settled.leads_to if moved else None

    async def take(self, pages: Sequence[PageRecord], address: str | None, at: float) -> None:
        """Have them visited as if they had been due at that time."""
        again = list(pages)
        if address is not None:
            there = await self._keeper.run(self._frontier.page, address)
            if there is not None and there.state in _HOLDS_NOTHING:
                again.append(there)
        if again:
            await self._keeper.run(self._notices.bring_forward, [(page, Said.NOTHING, at) for page in again])
