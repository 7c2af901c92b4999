"""Which pages were set aside for one that they name canonical, and is that one stored?

A page that names another one holds nothing itself as soon as the other may be stored, which is mostly not known
yet: it is about to be visited for the first time. If it turns out to lead back, to fail, to be gone or to be
refused, those that were set aside for it are looked at again. The memory is bounded and lives as long as the
process: what is forgotten waits for its next visit.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from levada.records import PageRecord, PageState, Settled

__all__ = ["StandIns"]


class _Aside(msgspec.Struct):
    page: PageRecord  # as it is after the visit that set it aside
    target: str
    is_committed: bool = False
    in_vain: bool = False


class StandIns:
    def __init__(self, most_kept: int = 20_000) -> None:
        self._most_kept = most_kept
        self._aside: OrderedDict[int, _Aside] = OrderedDict()  # by page
        self._targets: dict[str, set[int]] = {}  # the pages that wait for this one

    def set_aside(self, page: PageRecord, target: str) -> None:
        """`page`, as it was before this visit, holds nothing because of `target`, which is not stored yet."""
        self._forget(page.id)
        if len(self._aside) >= self._most_kept:
            self._forget(next(iter(self._aside)))
        self._aside[page.id] = _Aside(msgspec.structs.replace(page, visits=page.visits + 1), target)
        self._targets.setdefault(target, set()).add(page.id)

    def counts_on(self, url: str) -> bool:
        """Whether other pages were set aside for this one."""
        return url in self._targets

    def after(self, settled: Settled) -> list[PageRecord]:
        """The pages that were set aside in vain, as this commit shows: each once its own visit is committed."""
        page = settled.lease.page
        disappointed = []
        own = self._aside.get(page.id)
        if own is not None and settled.leads_to == own.target:
            own.is_committed = True
            if own.in_vain:
                disappointed.append(own.page)
                self._forget(page.id)
        elif own is not None:  # it was looked at again
            self._forget(page.id)
        for id in self._targets.pop(page.url, ()):
            waiting = self._aside[id]
            waiting.in_vain = settled.state is not PageState.LIVE
            if waiting.in_vain and waiting.is_committed:
                disappointed.append(waiting.page)
            if waiting.is_committed or not waiting.in_vain:
                del self._aside[id]
        return disappointed

    def _forget(self, id: int) -> None:
        aside = self._aside.pop(id, None)
        waiting = self._targets.get(aside.target) if aside is not None else None
        if aside is not None and waiting is not None:
            waiting.discard(id)
            if not waiting:
                del self._targets[aside.target]
