"""What is known of each site? The `Sites` port in memory."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from levada.adapters.memory.held import Held
from levada.records import SiteRecord

__all__ = ["MemorySites"]


class MemorySites:
    def __init__(self, held: Held) -> None:
        self._held = held

    def site(self, site: str) -> SiteRecord | None:
        there = self._held.sites.get(site)
        if there is None:
            return None
        refused = sorted((reason, *found) for (where, reason), found in self._held.refused.items() if where == site)
        return replace(there.record, pages=len(there.pages), refused=tuple(refused))

    def save(self, record: SiteRecord) -> None:
        site = self._held.site(record.site)
        admitted = record.admitted or site.record.admitted
        site.record = replace(record, admitted=admitted, pages=0, refused=())
        self._held.set_turn(site)

    def sites(self) -> Iterator[SiteRecord]:
        for name in list(self._held.sites):
            if (record := self.site(name)) is not None:
                yield record
