"""Store protocols, and the limits and capabilities that a store declares.

The crawl engine needs only `levada.core.protocols` (frontier, sites, documents, page sample, change hints). A whole
collection is a `Store`. A store that can hold one part of a larger collection is a `Shard`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from math import ceil
from typing import Protocol, runtime_checkable

import msgspec

from levada.core.protocols import ChangeHints, Documents, Frontier, PageSample, Sites
from levada.core.records import FoundUrl, NewVersion, OutboxLink, PageRecord, SiteRecord
from levada.core.site_rules.pace import Pace, SitePaces

MOST_SHARDS = 256


class Retention(msgspec.Struct, frozen=True):
    """Which versions of a page are kept; the newest always is, unless the page is gone. 0: no limit."""

    versions: int = 0
    seconds: float = 0.0
    thin: bool = False  # all of the last day, then one per day, after thirty days one per week


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a store. An invalid value raises a `ValueError` that names it."""

    max_pages_per_site: int = 10_000  # known URLs of one site; more are refused (site-full)
    keep_versions: int = 10  # per page; older ones are deleted when a new one is stored
    keep_seconds: float = 0.0  # older versions are deleted when a new one is stored; 0: no limit
    thin: bool = False  # of versions older than a day, keep one per day; older than thirty days, one per week
    keep_events: int = 1_000_000  # entries of the change log; older ones are deleted in batches
    # share of a lease for pages never visited; if one kind runs out, the other fills the lease
    new_share: float = 0.5
    delay: float = 0.0  # delay of a site that does not ask for one
    paces: SitePaces | None = None  # of sites with a delay, a budget or a page limit of their own
    parts: int = 1  # shards that each site is spread over
    run: int = 16  # consecutive pages of one site if it has no delay: fewer sites per lease
    known_urls: int = 100_000  # URLs remembered in memory as stored, to save lookups
    cache_bytes: int = 32 << 20  # size of the database's page cache
    busy_seconds: float = 5.0  # how long to wait for another process that writes
    statement_seconds: float = 30.0  # how long a server may take for one answer
    away_seconds: float = 0.0  # how long a writer waits for a server that is away
    shard: int = 0  # number of this shard in the collection; the ids of its pages and leases begin with it

    def __post_init__(self) -> None:
        for name in ("max_pages_per_site", "keep_versions", "keep_events", "run"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.statement_seconds <= 0:
            raise ValueError(f"statement_seconds must be positive, not {self.statement_seconds}")
        for name in ("keep_seconds", "delay", "known_urls", "cache_bytes", "busy_seconds", "away_seconds"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if not 0 <= self.shard < MOST_SHARDS:
            raise ValueError(f"shard must be from 0 to {MOST_SHARDS - 1}, not {self.shard}")
        if not 0 <= self.new_share <= 1:
            raise ValueError(f"new_share must be from 0 to 1, not {self.new_share}")

    def delay_of(self, site: str, asked: float | None) -> float:
        """Seconds between two requests to a site that asks for so many."""
        own = self._own(site)
        if own is None:
            return self.delay if asked is None else asked
        return max(own.gap, asked or 0.0) * self.parts

    def most_pages(self, site: str) -> int:
        """How many URLs of this site are kept."""
        own = self._own(site)
        return self.max_pages_per_site if own is None else ceil(own.most_pages / self.parts)

    def _own(self, site: str) -> Pace | None:
        return self.paces.own(site) if self.paces else None

    @property
    def retains_by_time(self) -> bool:
        """Whether which versions go depends on their age, so that they must be looked at."""
        return bool(self.keep_seconds) or self.thin

    @property
    def retention(self) -> Retention:
        return Retention(self.keep_versions, self.keep_seconds, self.thin)


def changed_limits(held: StoreLimits, limits: StoreLimits) -> StoreLimits:
    """The limits of an open store after a change: those that concern its opening stay."""
    return msgspec.structs.replace(
        held,
        keep_versions=limits.keep_versions,
        max_pages_per_site=limits.max_pages_per_site,
        new_share=limits.new_share,
        delay=limits.delay,
        paces=limits.paces,
        parts=limits.parts,
    )


class Capability(StrEnum):
    """What a store can do beyond `Store`; declared in `Store.capabilities`."""

    SHARD = "shard"  # the store is a `Shard`: one of several, and its pages can move to another
    FORGET = "forget"  # the store is a `Forgetting`: pages, sites and versions can be deleted for good
    EPOCHS = "epochs"  # the store is a `WithEpochs`: a failover may lose its newest changes
    BODIES = "bodies"  # it is `WithBodies`
    LIMITS = "limits"  # it has `set_limits`: its limits can change while it is open
    SLICES = "slices"  # the store is `Sliced`: several schedulers can lease its pages, each those of its sites


class WithBodies(Protocol):
    """A store that can hold texts and bodies elsewhere, in objects that its rows refer to (`levada.store.bodies`)."""

    def references(self, page_ids: Sequence[int]) -> list[bytes]:
        """The references of all versions of these pages."""

    def pages_there(self, page_ids: Sequence[int]) -> set[int]:
        """Those of these pages that the store knows."""

    def contents(self, after: int, limit: int) -> tuple[int | None, list[tuple[int, int, bytes]]]:
        """Page, version, and frame or reference, of the next `limit` pages with versions; and the next id, or None."""

    def replace_contents(self, contents: Sequence[tuple[int, int, bytes]], now: float) -> None:
        """Give these versions another frame or reference."""

    def delete_unused_bodies(self, before: float) -> int:
        """Delete the objects that no version names since before then; returns how many."""


class ShardAway(msgspec.Struct, frozen=True):
    """A shard that cannot be reached. Its text says so in one sentence."""

    number: int
    since: float  # epoch seconds
    why: str

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M:%S")
        return f"shard {self.number} cannot be reached: {self.why} (since {since} UTC)"


class WithLimits(Protocol):
    """A store whose limits can change while it is open."""

    def set_limits(self, limits: StoreLimits) -> None:
        """Keep the limits of versions and pages, the share of new pages and the pace of sites as here from now on."""


class Epoch(msgspec.Struct, frozen=True):
    """A history of the change log. Each begins where a server took over that may not have had the newest changes."""

    name: str
    after: int  # the last change that it has in common with the epoch before
    begins: int  # its own changes have numbers above this one, and no other epoch has


@runtime_checkable
class WithEpochs(Protocol):
    """A store whose newest changes may be lost in a failover."""

    def epochs(self) -> Sequence[Epoch]:
        """The epochs, the oldest first."""


class Sliced(Protocol):
    """A store whose sites lie in slices (`levada.store.ownership`), so that schedulers can share them."""

    def own(self, slices: frozenset[int] | None) -> None:
        """Lease pages of these slices only from now on; None: of all."""

    def end_leases_by(self, slices: frozenset[int], latest: float) -> None:
        """Let no lease in these slices last longer than that: who held them is gone."""


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
    def away(self) -> Mapping[int, ShardAway]:
        """The shards that cannot be reached at this moment, by number."""

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


class Deleted(msgspec.Struct, frozen=True):
    """How much a store deleted."""

    pages: int = 0
    versions: int = 0

    def __add__(self, other: Deleted) -> Deleted:
        return Deleted(self.pages + other.pages, self.versions + other.versions)


class Forgetting(Store, Protocol):
    """A store from which pages can be deleted for good. Each call is one transaction in each shard, and harmless if
    repeated.

    A tombstone is a keyed hash of a URL or a site. It comes first: from then on no link, sitemap, redirect or visit
    brings the page back. Then `erase` deletes pages, `erase_traces` what other rows hold of them, and `compact` what
    the database's files still hold. A page that was deleted has a place in the order of changes, without its URL.
    """

    def bury(self, urls: Sequence[str], sites: Sequence[str], at: float, key: str = "") -> str:
        """Set tombstones. The first call makes the key, or takes the one given; returns the key of the store."""

    def tombstones(self) -> tuple[str, list[tuple[str, float]]]:
        """The key ("": nothing was ever forgotten), and each tombstone with its time."""

    def adopt_tombstones(self, key: str, tombstones: Sequence[tuple[str, float]]) -> None:
        """Add the tombstones of another shard of the collection."""

    def lift(self, found: Sequence[FoundUrl]) -> list[str]:
        """Remove the tombstones of the start URLs among these, and of their sites; returns the URLs that had one."""

    def forgotten(self, urls: Sequence[str]) -> set[str]:
        """Those of these URLs that have a tombstone, or whose site has one."""

    def forgotten_sites(self, sites: Sequence[str]) -> set[str]:
        """Those of these sites that have a tombstone."""

    def erase(self, urls: Sequence[str], *, only_gone: bool = False) -> Deleted:
        """Delete these pages with everything that is stored of them; a visit under way commits nothing."""

    def erase_traces(self, after: int, limit: int) -> int | None:
        """Delete what the next `limit` pages after this id hold of forgotten ones, and at the end what sites,
        refusals and the outbox do. Returns the next id, or None at the end."""

    def thin_out(
        self, after: int, limit: int, now: float, rules: Retention, *, site: str = "", dry_run: bool = False
    ) -> tuple[int | None, Deleted, list[str]]:
        """Delete the versions that the next `limit` pages with versions need not keep. Returns the next id (None at the
        end), what went, and the gone pages whose newest version is too old, to be erased."""

    def compact(self) -> None:
        """Leave no byte of what was deleted in the database's files."""


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


class Shard(Forgetting, Protocol):
    """A store that can be one of several. `StoreLimits.shard` is its number: page ids and lease tokens of different
    shards never collide.

    Links to pages of other shards wait in an outbox: written with the visit that found them, deleted when their
    shard has them.

    Pages move between shards in four steps: `fence` at the source, `import_pages` at the target, `let_go` at the
    source, `unfence` at the target. Each is one transaction and harmless if repeated. A fenced page can be read, but
    is neither leased nor brought forward, and its fence outlives `forget_leases`. After a crash, the fences show how
    far a move had come.
    """

    def undelivered(self, limit: int, after: int = 0) -> list[OutboxLink]:
        """The oldest links of the outbox, of those with a higher id than `after`."""

    def delivered(self, ids: Sequence[int]) -> None: ...

    def receive(self, links: Sequence[OutboxLink]) -> int:
        """Add these URLs, with where and when they were found. Returns how many were new; repeating it changes
        nothing."""

    def fence(self, urls: Sequence[str], expired_by: float = 0.0) -> list[MovedPage]:
        """Fence and pack those of these pages that nobody has leased. Pages fenced before are packed again.

        A lease that ended by `expired_by` is that of a dead process: it does not count, and commits nothing."""

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
