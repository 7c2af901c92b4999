"""What does a page take along when it moves to another shard? Everything that its store holds of it.

Only the log of what happened to it stays where it was written: whoever reads the feed has a place in each shard's
log, and would meet entries that moved twice, or never.

The page keeps its number, so whatever refers to it (where a link was found, the policy's panel, the index) still
does. A shard of any database packs and unpacks the same, so that a collection can move from one engine to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from levada.records import Forwarded, NewVersion, PageRecord, SiteRecord

__all__ = ["MovedPage", "MovedVersion", "Movers", "Outbox"]


class MovedVersion(msgspec.Struct, frozen=True):
    number: int
    fetched_at: float
    content: NewVersion


class MovedPage(msgspec.Struct, frozen=True):
    page: PageRecord
    site: SiteRecord  # as its shard knows it: counts are left behind
    turn_at: float  # of the site: politeness moves along
    priority: int
    met_at: float
    gone: bool
    versions: tuple[MovedVersion, ...]  # oldest first


class Outbox(Protocol):
    """Links to pages of other shards: written with the visit that found them, gone when their shard has them."""

    def undelivered(self, limit: int) -> list[Forwarded]:
        """The oldest first."""
        ...

    def delivered(self, ids: Sequence[int]) -> None: ...

    def receive(self, links: Sequence[Forwarded]) -> int:
        """Hold these URLs, with where and when they were found; how many were new. Twice is as good as once."""
        ...


class Movers(Protocol):
    """A page moves in four steps, each one transaction, each harmless if repeated:

    `fence` at the source, `take_in` at the target, `let_go` at the source, `open_up` at the target. A fenced page
    can be read, but is neither leased nor brought forward, and its fence outlives `forget_leases`. Whatever is
    fenced after a crash tells how far its move had come.
    """

    def fence(self, urls: Sequence[str]) -> list[MovedPage]:
        """Hold on to those of these pages that nobody has leased, and pack them; fenced ones are packed again."""
        ...

    def take_in(self, pages: Sequence[MovedPage]) -> None:
        """Hold these pages, fenced; pages that are there already stay as they are."""
        ...

    def let_go(self, page_ids: Sequence[int]) -> None:
        """Forget these fenced pages, and say so in the order of changes."""
        ...

    def open_up(self, page_ids: Sequence[int]) -> None:
        """Their move is over: these fenced pages can be leased."""
        ...

    def fenced(self) -> list[tuple[int, str]]:
        """Number and address of every page that is fenced."""
        ...

    def urls_after(self, page_id: int, limit: int) -> list[tuple[int, str]]:
        """Number and address of the next pages by number, to walk over all of them."""
        ...
