"""The data of a store in memory: sites, pages, leases and versions, and how a visit changes a page's versions."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from levada.core.reasons import Reason
from levada.core.records import (
    Change,
    ChangeEvent,
    Document,
    NewVersion,
    PageRecord,
    PageState,
    SiteRecord,
    VisitResult,
)
from levada.store.base import StoreLimits
from levada.store.rules import TIDIED_EVERY, amends, change_kind, is_removed, plain_text, unpacked, version_after


@dataclass
class MemorySite:
    id: int
    record: SiteRecord
    turn_at: float = 0.0
    due_at: float | None = None
    taken: int = 0
    pages: list[MemoryPage] = field(default_factory=list)

    def due_again(self, at: float) -> None:
        """A page of this site may be leased from `at` on, when the site has its turn."""
        turn = max(at, self.turn_at, self.record.rest_until)
        self.due_at = turn if self.due_at is None else min(self.due_at, turn)


@dataclass
class MemoryPage:
    record: PageRecord
    site: MemorySite
    priority: int
    met_at: float = 0.0
    gone: bool = False
    seq: int = 0
    versions: dict[int, tuple[float, NewVersion]] = field(default_factory=dict)

    @property
    def is_stored(self) -> bool:
        """Whether it has a document that was not removed."""
        return self.record.version > 0 and not self.gone

    def is_due(self, now: float) -> bool:
        return self.record.next_visit is not None and self.record.next_visit <= now


@dataclass
class MemoryLease:
    token: int
    expires_at: float
    live: bool = True  # False: expired; its holder may still commit until another process leases the page


@dataclass
class MemoryData:
    """Everything of one crawl."""

    limits: StoreLimits
    pages: dict[str, MemoryPage] = field(default_factory=dict)
    by_id: dict[int, MemoryPage] = field(default_factory=dict)
    sites: dict[str, MemorySite] = field(default_factory=dict)
    leases: dict[int, MemoryLease] = field(default_factory=dict)
    refused: dict[tuple[str, Reason], tuple[int, str]] = field(default_factory=dict)
    change_log: list[ChangeEvent] = field(default_factory=list)
    token: int = 0
    seq: int = 0

    def site(self, name: str) -> MemorySite:
        """The site of this name, added if it is unknown."""
        if name not in self.sites:
            self.sites[name] = MemorySite(len(self.sites) + 1, SiteRecord(name))
        return self.sites[name]

    def delay(self, site: MemorySite) -> float:
        return self.limits.delay if site.record.delay is None else site.record.delay

    def is_free(self, page: MemoryPage) -> bool:
        lease = self.leases.get(page.record.id)
        return lease is None or not lease.live

    def set_turn(self, site: MemorySite) -> None:
        """Recompute when the site's next page may be leased."""
        site.due_at = None
        if (earliest := self._earliest(site)) is not None:
            site.due_again(earliest)

    def _earliest(self, site: MemorySite) -> float | None:
        """When the site's next page without a lease is due. Of new pages, only the first in order counts."""
        free = [page for page in site.pages if self.is_free(page)]
        new = min(
            ((page.priority, page.record.id, page.record.found_at) for page in free if not page.record.visits),
            default=None,
        )
        due = [page.record.next_visit for page in free if page.record.visits and page.record.next_visit is not None]
        return min([*due, new[2]] if new else due, default=None)


def keep_content(held: MemoryData, page: MemoryPage, result: VisitResult) -> None:
    """Store the version that a visit brought. A page that is gone leaves search, one that is back returns."""
    was_gone = page.gone
    what = change_kind(result, was_gone)
    if result.version is not None:
        number = version_after(result)
        stored_at, version = result.visit.at, _storable(result.version)
        if amends(result):
            stored_at, before = page.versions[number]
            version = replace(version, similarity=before.similarity)
        page.record = replace(page.record, version=number, sketch=version.sketch)
        page.versions[number] = (stored_at, version)
        page.versions.pop(number - held.limits.keep_versions, None)
    if page.record.version == 0:
        return
    if is_removed(result.state):
        page.gone = True
    elif result.version is not None or result.state is PageState.LIVE:
        page.gone = False
    if result.version is not None or page.gone != was_gone:
        held.seq += 1
        page.seq = held.seq
    if what is not None:
        similarity = result.version.similarity if result.version else 1.0
        record = page.record
        held.change_log.append(
            ChangeEvent(held.seq, result.visit.at, what, record.id, record.url, record.site, record.version, similarity)
        )
        if held.seq % TIDIED_EVERY == 0:
            kept = held.seq - held.limits.keep_events
            held.change_log = [each for each in held.change_log if each.seq > kept]


def _storable(version: NewVersion) -> NewVersion:
    headers = tuple((plain_text(name), plain_text(value)) for name, value in version.headers)
    return replace(version, title=plain_text(version.title), headers=headers)


def change_of(page: MemoryPage) -> Change:
    record = page.record
    document = None if page.gone else replace(document_of(page, record.version), body=b"")
    shown = document if document is not None and document.searchable else None
    return Change(page.seq, record.id, record.url, record.site, shown)


def document_of(page: MemoryPage, number: int) -> Document:
    fetched_at, version = page.versions[number]
    current = number == page.record.version
    text, body = unpacked(version.content_zstd)
    return Document(
        page_id=page.record.id,
        url=page.record.url,
        site=page.record.site,
        version=number,
        title=version.title,
        language=version.language,
        charset=version.charset,
        text=text,
        body=body,
        status=version.status,
        headers=version.headers,
        fetched_at=fetched_at,
        checked_at=page.met_at if current else fetched_at,
        words=version.words,
        similarity=version.similarity,
        searchable=version.searchable,
        gone=page.gone,
    )
