"""How much does a store keep, and how does it share out turns?"""

from __future__ import annotations

import msgspec

__all__ = ["MOST_SHARDS", "StoreLimits"]

MOST_SHARDS = 256


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a store; a value that makes no sense is a `ValueError` that names it."""

    max_pages_per_site: int = 10_000  # URLs held of one site; more are refused (site-full)
    keep_versions: int = 10  # per page; older ones are deleted when a new one is stored
    keep_happenings: int = 1_000_000  # of the log of changes; older ones are deleted now and then
    new_share: float = 0.5  # of a lease, for pages never visited; the other kind fills up
    delay: float = 0.0  # politeness assumed of a site that asks for none
    run: int = 16  # pages of one site in a row where no politeness spreads them: fewer sites touched per lease
    known_urls: int = 100_000  # remembered in memory as stored, to save lookups
    cache_bytes: int = 32 << 20  # of the database's own page cache
    busy_seconds: float = 5.0  # waited for another process that writes
    shard: int = 0  # which of the collection's shards this is: numbers of pages and leases begin with it

    def __post_init__(self) -> None:
        for name in ("max_pages_per_site", "keep_versions", "keep_happenings", "run"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("delay", "known_urls", "cache_bytes", "busy_seconds"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if not 0 <= self.shard < MOST_SHARDS:
            raise ValueError(f"shard must be from 0 to {MOST_SHARDS - 1}, not {self.shard}")
        if not 0 <= self.new_share <= 1:
            raise ValueError(f"new_share must be from 0 to 1, not {self.new_share}")
