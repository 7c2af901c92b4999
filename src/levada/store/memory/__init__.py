"""The store in memory: the reference that every other store must match."""

from __future__ import annotations

from levada.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
