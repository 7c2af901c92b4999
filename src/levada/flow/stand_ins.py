"""Which pages were set aside for one that they name canonical, and is that one stored?

A page that names another one holds nothing itself as soon as the other may be stored, which is mostly not known
yet: it is about to be visited for the first time. If it turns out to lead back, to be gone or to be refused, those
that were set aside for it are looked at again. The memory is bounded and lives as long as the process: what is
forgotten waits for its next visit.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec.structs import replace

from levada.records import PageRecord, PageState, Settled

__all__ = ["StandIns"]

_STILL_OPEN = frozenset({PageState.NEW, PageState.FAILED})


class StandIns:
    def __init__(self, most_kept: int = 20_000) -> None:
        self._most_kept = most_kept
        self._set_aside: OrderedDict[str, list[PageRecord]] = OrderedDict()  # by what is to stand for them

    def set_aside(self, page: PageRecord, target: str) -> None:
        """`page`, as it was before this visit, holds nothing because of `target`, which is not stored yet."""
        self._set_aside.setdefault(target, []).append(replace(page, visits=page.visits + 1))
        if len(self._set_aside) > self._most_kept:
            self._set_aside.popitem(last=False)

    def counts_on(self, url: str) -> bool:
        """Whether other pages were set aside for this one."""
        return url in self._set_aside

    def disappointed(self, settled: Settled) -> list[PageRecord]:
        """The pages that were set aside for this one in vain."""
        if settled.state in _STILL_OPEN:
            return []
        waiting = self._set_aside.pop(settled.lease.page.url, [])
        return [] if settled.state is PageState.LIVE else waiting
