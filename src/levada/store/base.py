"""Store protocols, and the limits and capabilities that a store declares.

The crawl engine needs only `levada.core.protocols` (frontier, sites, documents, page sample, change hints). A whole
collection is a `Store`. A store that can hold one part of a larger collection is a `Shard`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from levada.core.protocols import ChangeHints, Documents, Frontier, PageSample, Sites
from levada.core.records import NewVersion, OutboxLink, PageRecord, SiteRecord

MOST_SHARDS = 256


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a store. An invalid value raises a `ValueError` that names it."""

    max_pages_per_site: int = 10_000  # known URLs of one site; more are refused (site-full)
    keep_versions: int = 10  # per page; older ones are deleted when a new one is stored
    keep_events: int = 1_000_000  # entries of the change log; older ones are deleted in batches
    # share of a lease for pages never visited; if one kind runs out, the other fills the lease
    new_share: float = 0.5
    delay: float = 0.0  # delay of a site that does not ask for one
    run: int = 16  # consecutive pages of one site if it has no delay: fewer sites per lease
    known_urls: int = 100_000  # URLs remembered in memory as stored, to save lookups
    cache_bytes: int = 32 << 20  # size of the database's page cache
    busy_seconds: float = 5.0  # how long to wait for another process that writes
    shard: int = 0  # number of this shard in the collection; the ids of its pages and leases begin with it

    def __post_init__(self) -> None:
        for name in ("max_pages_per_site", "keep_versions", "keep_events", "run"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("delay", "known_urls", "cache_bytes", "busy_seconds"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if not 0 <= self.shard < MOST_SHARDS:
            raise ValueError(f"shard must be from 0 to {MOST_SHARDS - 1}, not {self.shard}")
        if not 0 <= self.new_share <= 1:
            raise ValueError(f"new_share must be from 0 to 1, not {self.new_share}")


class Capability(StrEnum):
    """What a store can do beyond `Store`; declared in `Store.capabilities`."""

    SHARD = "shard"  # the store is a `Shard`: one of several, and its pages can move to another


class Store(Frontier, Sites, Documents, PageSample, ChangeHints, Protocol):
    """A whole collection, on any number of shards."""

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def format(self) -> int:
        """The version of the layout that this store is written in."""

    # For readers that follow a collection shard by shard. A store in one place is its own only shard.

    @property
    def shards(self) -> Sequence[Store]: ...

    @property
    def logs(self) -> Sequence[Documents]:
        """The stores whose change log is read: the shards, and former shards that hold no pages any more."""

    @property
    def away(self) -> Mapping[int, str]:
        """The shards that cannot be reached, by number, each with the reason."""

    # For the process that starts a crawl.

    def forget_leases(self) -> None:
        """End the leases of dead processes. Only the one process that leases pages may call it."""

    def limit_waits(self, now: float, latest: float) -> int:
        """Make due now what would wait beyond `latest` because the clock was wrong. Returns the number of sites
        changed. Leased pages and dropped sites stay as they are."""

    # For commands and web pages that name a page.

    def url_of(self, page_id: int) -> str | None:
        """The URL of the page with this id."""

    def urls_like(self, start: str, limit: int) -> list[str]:
        """The first URLs, in order, that begin with `start`."""

    def newest_seq(self) -> int:
        """The sequence number of the newest change; 0 if nothing was ever stored."""

    # For `levada doctor`, and for a process that ends.

    def check(self) -> None:
        """Read everything once; raise `StoreDamaged` if the store is damaged."""

    def close(self) -> None: ...


class MovedVersion(msgspec.Struct, frozen=True):
    """One version of a page that moves to another shard."""

    number: int
    fetched_at: float
    content: NewVersion


class MovedPage(msgspec.Struct, frozen=True):
    """Everything that a store holds of a page that moves to another shard.

    Only its entries of the change log stay behind: readers of the feed have a position in each shard's log, and
    would read moved entries twice or never. The page keeps its id, so references to it stay valid. Every database
    packs the same record, so a collection can move from one engine to another.
    """

    page: PageRecord
    site: SiteRecord  # as its shard knows it, without counts
    turn_at: float  # of the site: politeness moves with the page
    priority: int
    met_at: float
    gone: bool
    versions: tuple[MovedVersion, ...]  # oldest first


class Shard(Store, Protocol):
    """A store that can be one of several. `StoreLimits.shard` is its number: page ids and lease tokens of different
    shards never collide.

    Links to pages of other shards wait in an outbox: written with the visit that found them, deleted when their
    shard has them.

    Pages move between shards in four steps: `fence` at the source, `import_pages` at the target, `let_go` at the
    source, `unfence` at the target. Each is one transaction and harmless if repeated. A fenced page can be read, but
    is neither leased nor brought forward, and its fence outlives `forget_leases`. After a crash, the fences show how
    far a move had come.
    """

    def undelivered(self, limit: int) -> list[OutboxLink]:
        """The oldest links of the outbox."""

    def delivered(self, ids: Sequence[int]) -> None: ...

    def receive(self, links: Sequence[OutboxLink]) -> int:
        """Add these URLs, with where and when they were found. Returns how many were new; repeating it changes
        nothing."""

    def fence(self, urls: Sequence[str]) -> list[MovedPage]:
        """Fence and pack those of these pages that nobody has leased. Pages fenced before are packed again."""

    def import_pages(self, pages: Sequence[MovedPage]) -> None:
        """Add these pages, fenced. Pages that are already here stay as they are."""

    def let_go(self, page_ids: Sequence[int]) -> None:
        """Delete these fenced pages, and record it in the order of changes."""

    def unfence(self, page_ids: Sequence[int]) -> None:
        """End the move of these fenced pages: they can be leased again."""

    def fenced(self) -> list[tuple[int, str]]:
        """Id and URL of every fenced page."""

    def urls_after(self, page_id: int, limit: int) -> list[tuple[int, str]]:
        """Id and URL of the next pages by id, to walk over all of them."""

    def waiting(self, now: float, limit: int) -> list[tuple[float, int]]:
        """For the first sites whose turn has come: since when, and how many pages each has given so far."""

    def follow_seq(self, seq: int) -> None:
        """Number the next change after `seq`, which another shard has used."""
