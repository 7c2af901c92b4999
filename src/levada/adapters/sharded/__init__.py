"""The sharded family: one collection over several stores, each with pages of its own."""

from __future__ import annotations

from levada.adapters.sharded.plan import FixedPlan, ShardPlan
from levada.adapters.sharded.store import ShardedStore

__all__ = ["FixedPlan", "ShardPlan", "ShardedStore"]
