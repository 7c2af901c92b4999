"""What if a shard's server cannot be reached? Whoever needs that shard is told so; whoever does not goes on."""

from __future__ import annotations

from typing import Any

from levada.errors import StoreError

__all__ = ["AwayShard"]


class AwayShard:
    """Stands in for a shard: everything that is asked of it is a `StoreError` that says why it is not there."""

    def __init__(self, number: int, why: StoreError) -> None:
        self.why = f"shard {number} cannot be reached: {why}"

    def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise StoreError(self.why)
