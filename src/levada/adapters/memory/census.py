"""What are the pages like that were visited before? The `Census` port in memory."""

from __future__ import annotations

from collections.abc import Iterator

from levada.adapters.keeping import checked_one_in
from levada.adapters.memory.held import Held
from levada.hashing import drawn
from levada.records import PageRecord

__all__ = ["MemoryCensus"]


class MemoryCensus:
    def __init__(self, held: Held) -> None:
        self._held = held

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        one_in = checked_one_in(one_in)
        for id, page in sorted(self._held.by_id.items()):
            if page.is_stored and drawn(id, one_in):
                yield page.record

    def live_pages(self) -> int:
        return sum(page.is_stored for page in self._held.by_id.values())
