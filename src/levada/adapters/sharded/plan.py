"""Who holds which page: one placement, or two while pages move?

While pages move, `current` says where they were and `following` where they are going. A page is at its old place
until it is at its new one; new pages are only ever added at the new place, and only after a look at the old. A
shard in `emptied` has given away all that it had to. A move that is `returning` takes back an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import msgspec

from levada.sharding.asked import Filter
from levada.sharding.pages import keeps_sites_whole, page_values, site_filter
from levada.sharding.placement import Placement

__all__ = ["FixedPlan", "PlanSource", "ShardPlan"]


class ShardPlan(msgspec.Struct, frozen=True):
    current: Placement
    following: Placement | None = None
    emptied: tuple[int, ...] = ()
    returning: bool = False

    @property
    def shards(self) -> int:
        return max(self.current.shards, self.following.shards if self.following else 0)

    @property
    def used(self) -> int:
        """How many shards pages are placed on: the first may be left empty for good by a move to servers."""
        return len(set((self.following or self.current).ranges.owners))

    @property
    def keeps_sites_whole(self) -> bool:
        return self.following is None and keeps_sites_whole(self.current)

    def home(self, url: str) -> int:
        """The shard that is to hold this page."""
        return (self.following or self.current).place(page_values(url))

    def before(self, url: str) -> int | None:
        """The shard that may still hold it instead; None if it cannot."""
        if self.following is None:
            return None
        values = page_values(url)
        old, new = self.current.place(values), self.following.place(values)
        return None if old == new or old in self.emptied else old

    def places(self, url: str) -> tuple[int, ...]:
        """Where to look for this page, in this order: a page that moves meanwhile is not missed."""
        old, new = self.before(url), self.home(url)
        return (new,) if old is None else (old, new)

    def touched(self, asked: Filter | None) -> list[int]:
        """The shards that may hold what the filter finds."""
        shards = set(self.current.shards_for(asked))
        if self.following is not None:
            shards |= self.following.shards_for(asked)
        return sorted(shards)

    def shards_of_site(self, site: str) -> list[int]:
        return self.touched(site_filter([site]))


class PlanSource(Protocol):
    """Where the plan is read. While it is held steady nobody replaces it, in this process or another."""

    def steady(self) -> AbstractContextManager[ShardPlan]: ...

    def close(self) -> None: ...


class FixedPlan:
    """A plan that nobody changes."""

    def __init__(self, plan: ShardPlan) -> None:
        self._plan = plan

    @contextmanager
    def steady(self) -> Iterator[ShardPlan]:
        yield self._plan

    def close(self) -> None:
        pass
