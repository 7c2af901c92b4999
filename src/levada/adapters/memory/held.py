"""What does a store in memory hold? Sites, pages, leases and refusals, as the three ports share them."""

from __future__ import annotations

from dataclasses import dataclass, field

from levada.adapters.limits import StoreLimits
from levada.reasons import Reason
from levada.records import Happening, NewVersion, PageRecord, SiteRecord

__all__ = ["Held", "HeldLease", "HeldPage", "HeldSite"]


@dataclass
class HeldSite:
    id: int
    record: SiteRecord
    turn_at: float = 0.0
    due_at: float | None = None
    taken: int = 0
    pages: list[HeldPage] = field(default_factory=list)

    def due_again(self, at: float) -> None:
        """A page of this site may be leased from `at` on, in its turn."""
        turn = max(at, self.turn_at, self.record.rest_until)
        self.due_at = turn if self.due_at is None else min(self.due_at, turn)


@dataclass
class HeldPage:
    record: PageRecord
    site: HeldSite
    priority: int
    met_at: float = 0.0
    gone: bool = False
    seq: int = 0
    versions: dict[int, tuple[float, NewVersion]] = field(default_factory=dict)

    @property
    def is_stored(self) -> bool:
        """Has it a document that was not removed?"""
        return self.record.version > 0 and not self.gone

    def is_due(self, now: float) -> bool:
        return self.record.next_visit is not None and self.record.next_visit <= now


@dataclass
class HeldLease:
    token: int
    expires_at: float
    live: bool = True  # False: expired and said so; its holder may still settle until another leases


@dataclass
class Held:
    """Everything of one crawl."""

    limits: StoreLimits
    pages: dict[str, HeldPage] = field(default_factory=dict)
    by_id: dict[int, HeldPage] = field(default_factory=dict)
    sites: dict[str, HeldSite] = field(default_factory=dict)
    leases: dict[int, HeldLease] = field(default_factory=dict)
    refused: dict[tuple[str, Reason], tuple[int, str]] = field(default_factory=dict)
    happenings: list[Happening] = field(default_factory=list)
    token: int = 0
    seq: int = 0

    def site(self, name: str) -> HeldSite:
        """The site of this name, held from now on if it was not."""
        if name not in self.sites:
            self.sites[name] = HeldSite(len(self.sites) + 1, SiteRecord(name))
        return self.sites[name]

    def delay(self, site: HeldSite) -> float:
        return self.limits.delay if site.record.delay is None else site.record.delay

    def is_free(self, page: HeldPage) -> bool:
        lease = self.leases.get(page.record.id)
        return lease is None or not lease.live

    def set_turn(self, site: HeldSite) -> None:
        """Say anew when the site's next page may be had."""
        site.due_at = None
        if (earliest := self._earliest(site)) is not None:
            site.due_again(earliest)

    def _earliest(self, site: HeldSite) -> float | None:
        """When the site's next page that nobody holds is due; among new ones the first in order speaks."""
        free = [page for page in site.pages if self.is_free(page)]
        new = min(
            ((page.priority, page.record.id, page.record.found_at) for page in free if not page.record.visits),
            default=None,
        )
        due = [page.record.next_visit for page in free if page.record.visits and page.record.next_visit is not None]
        return min([*due, new[2]] if new else due, default=None)
