"""Which pages did somebody tell of, and when are they visited then? The `Notices` port in memory."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from levada.adapters.keeping import brought_forward, is_news
from levada.adapters.memory.held import Held
from levada.records import Notice, PageRecord, Said

__all__ = ["MemoryNotices"]


class MemoryNotices:
    def __init__(self, held: Held) -> None:
        self._held = held

    def outdated(self, notices: Sequence[Notice]) -> list[PageRecord]:
        found: dict[int, PageRecord] = {}
        for notice in notices:
            page = self._held.pages.get(notice.url)
            if page and page.is_stored and is_news(notice, page.met_at, page.record.told):
                found.setdefault(page.record.id, page.record)
        return list(found.values())

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Said, float | None]]) -> None:
        for known, said, at in pages:
            self._bring_forward(known, said, at)

    def _bring_forward(self, known: PageRecord, said: Said, at: float | None) -> None:
        page = self._held.by_id.get(known.id)
        if page is None or not self._held.is_free(page) or page.record.visits != known.visits or not known.visits:
            return
        planned = page.record.next_visit
        next_visit = brought_forward(planned, at)
        page.record = replace(page.record, told=page.record.told | said, next_visit=next_visit)
        if next_visit is not None and next_visit != planned:
            page.site.due_again(next_visit)
