"""What must a store be able to do to be one shard of several?"""

from __future__ import annotations

from typing import Protocol

from levada.adapters.moving import Movers, Outbox
from levada.ports import Census, Documents, Frontier, Notices, Sites
from levada.records import Happening

__all__ = ["Shard"]


class Shard(Frontier, Sites, Documents, Census, Notices, Outbox, Movers, Protocol):
    """Its `StoreLimits.shard` is its number: pages and leases of different shards never share one."""

    def close(self) -> None: ...

    def check(self) -> None: ...

    @property
    def format(self) -> int: ...

    def forget_leases(self) -> None: ...

    def limit_waits(self, now: float, latest: float) -> int: ...

    def url_of(self, page_id: int) -> str | None: ...

    def urls_like(self, start: str, limit: int) -> list[str]: ...

    def newest_seq(self) -> int: ...

    def happenings(self, after: int, limit: int) -> list[Happening]: ...

    def waiting(self, now: float, limit: int) -> list[tuple[float, int]]:
        """Of the sites whose turn has come, the first: since when, and how many pages each has given so far."""
        ...

    def follow_seq(self, seq: int) -> None:
        """Its next change comes after this step, which another shard has taken."""
        ...
