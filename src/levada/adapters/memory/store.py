"""Where does a whole crawl live while it lasts? Every port of a store over one set of dictionaries."""

from __future__ import annotations

from levada.adapters.composed_store import ComposedStore
from levada.adapters.limits import StoreLimits
from levada.adapters.memory.census import MemoryCensus
from levada.adapters.memory.documents import MemoryDocuments
from levada.adapters.memory.frontier import MemoryFrontier
from levada.adapters.memory.held import Held
from levada.adapters.memory.notices import MemoryNotices
from levada.adapters.memory.sites import MemorySites

__all__ = ["MemoryStore"]


class MemoryStore(ComposedStore):
    """Forgotten with the process."""

    def __init__(self, *, limits: StoreLimits | None = None) -> None:
        held = Held(limits or StoreLimits())
        super().__init__(
            MemoryFrontier(held), MemorySites(held), MemoryDocuments(held), MemoryCensus(held), MemoryNotices(held)
        )

    def close(self) -> None:
        """Nothing is held that needs closing."""
