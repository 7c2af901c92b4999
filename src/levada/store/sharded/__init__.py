"""The sharded store: one collection over several stores, each with pages of its own."""

from __future__ import annotations

from levada.store.sharded.plan import ShardPlan
from levada.store.sharded.store import ShardedStore

__all__ = ["ShardPlan", "ShardedStore"]
