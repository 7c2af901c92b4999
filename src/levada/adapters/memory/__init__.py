"""The reference family: what every store must do, in dictionaries, lost when the process ends."""

from __future__ import annotations

from levada.adapters.faults import NoFaults
from levada.adapters.memory.store import MemoryStore

__all__ = ["MemoryStore", "NoFaults"]
