"""What must every store do? The reference: everything in dictionaries, lost when the process ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from levada.adapters.keeping import (
    DUE_COUNTED,
    example_of,
    holdable,
    is_removed,
    met_content,
    plain_text,
    refused_for,
    remember,
    unpacked,
    validators_after,
)
from levada.adapters.limits import StoreLimits
from levada.adapters.turns import SiteTurn, hand_out
from levada.reasons import Reason
from levada.records import (
    Change,
    Document,
    Found,
    Lease,
    NewVersion,
    PageRecord,
    PageState,
    Refusal,
    Settled,
    SiteRecord,
    Standing,
    VersionInfo,
)

__all__ = ["MemoryStore", "NoFaults"]


class NoFaults:
    """The disk works and the process lives."""

    def reach(self, point: str) -> None:
        pass


@dataclass
class _Site:
    id: int
    record: SiteRecord
    turn_at: float = 0.0
    due_at: float | None = None
    taken: int = 0
    pages: list[_Page] = field(default_factory=list)

    def due_again(self, at: float) -> None:
        """A page of this site may be leased from `at` on, in its turn."""
        turn = max(at, self.turn_at, self.record.rest_until)
        self.due_at = turn if self.due_at is None else min(self.due_at, turn)


@dataclass
class _Page:
    record: PageRecord
    site: _Site
    priority: int
    met_at: float = 0.0
    gone: bool = False
    seq: int = 0
    versions: dict[int, tuple[float, NewVersion]] = field(default_factory=dict)


@dataclass
class _Lease:
    token: int
    expires_at: float
    live: bool = True  # False: expired and said so; its holder may still settle until another leases


class MemoryStore:
    """Frontier, Sites and Documents of one crawl in memory."""

    def __init__(self, *, limits: StoreLimits | None = None) -> None:
        self._limits = limits or StoreLimits()
        self._pages: dict[str, _Page] = {}
        self._by_id: list[_Page] = []
        self._sites: dict[str, _Site] = {}
        self._leases: dict[int, _Lease] = {}
        self._refused: dict[tuple[str, Reason], tuple[int, str]] = {}
        self._token = 0
        self._seq = 0

    def close(self) -> None:
        """Nothing is held that needs closing."""

    def add(self, found: Sequence[Found], refused: Sequence[Refusal], now: float) -> int:
        new = sum(self._hold(each, None, now) for each in found)
        for refusal in refused:
            self._refuse(refusal)
        return new

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        if limit <= 0:
            return []
        self._lapse(now)
        due_by = now if due is None else due
        turns_due = [
            (site.due_at, site.taken, site.id, site) for site in self._sites.values() if site.due_at is not None
        ]
        ready = [site for due_at, _, _, site in sorted(turns_due, key=lambda each: each[:3]) if due_at <= now]
        sites = {site.id: site for site in ready[:limit]}
        turns = [SiteTurn(site.id, self._delay(site), site.taken) for site in sites.values()]
        leases: list[Lease] = []
        portions = hand_out(turns, lambda id, n: self._peek(sites[id], due_by, n), self._limits, limit, seconds)
        for portion in portions:
            site = sites[portion.site.id]
            leases.extend(self._grant(self._by_id[id - 1], now + seconds) for id in portion.pages)
            if portion.pages:
                site.turn_at = portion.next_turn(now)
                site.taken += len(portion.pages)
            site.due_at = None
            if (earliest := self._earliest(site)) is not None:
                site.due_again(earliest)
        return leases

    def settle(self, visits: Sequence[Settled]) -> list[bool]:
        return [self._settle(settled) for settled in visits]

    def release(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            if self._fenced(lease):
                page = self._by_id[lease.page.id - 1]
                page.site.turn_at -= self._delay(page.site)
                page.site.due_again(page.record.next_visit or 0.0)

    def page(self, url: str) -> PageRecord | None:
        page = self._pages.get(url)
        return page.record if page else None

    def standing(self, now: float) -> Standing:
        pages = self._by_id
        leased = {id for id, lease in self._leases.items() if lease.live and lease.expires_at > now}
        due = [p for p in pages if p.record.visits and p.record.id not in leased and self._is_due(p, now)]
        times = [site.due_at for site in self._sites.values() if site.due_at is not None]
        times += [lease.expires_at for lease in self._leases.values() if lease.live]
        versions = [each for page in pages for _, each in page.versions.values()]
        return Standing(
            sites=len(self._sites),
            known=len(pages),
            unvisited=sum(page.record.visits == 0 for page in pages),
            due=min(len(due), DUE_COUNTED),
            leased=len(leased),
            stored=sum(page.record.version > 0 and not page.gone for page in pages),
            versions=len(versions),
            next_due=min(times, default=None),
            workable=any(self._is_workable(site, now) for site in self._sites.values()),
            states=_counted([(page.record.state, 1) for page in pages]),
            refused=_counted([(reason, n) for (_, reason), (n, _) in self._refused.items()]),
            bytes=sum(len(each.text_zstd) + len(each.body_zstd) for each in versions),
        )

    def site(self, site: str) -> SiteRecord | None:
        held = self._sites.get(site)
        if held is None:
            return None
        refused = sorted((reason, *found) for (where, reason), found in self._refused.items() if where == site)
        return replace(held.record, pages=len(held.pages), refused=tuple(refused))

    def save(self, record: SiteRecord) -> None:
        site = self._site(record.site)
        admitted = record.admitted or site.record.admitted
        site.record = replace(record, admitted=admitted, pages=0, refused=())
        site.due_at = None
        if (earliest := self._earliest(site)) is not None:
            site.due_again(earliest)

    def sites(self) -> Iterator[SiteRecord]:
        for name in list(self._sites):
            if (record := self.site(name)) is not None:
                yield record

    def document(self, url: str, version: int | None = None) -> Document | None:
        page = self._pages.get(url)
        if page is None or (version or page.record.version) not in page.versions:
            return None
        return _document(page, version or page.record.version)

    def versions(self, url: str) -> list[VersionInfo]:
        page = self._pages.get(url)
        kept = sorted(page.versions.items(), reverse=True) if page else []
        return [VersionInfo(n, at, each.title, each.words, each.similarity) for n, (at, each) in kept]

    def changes(self, after: int, limit: int) -> list[Change]:
        changed = sorted((page for page in self._by_id if page.seq > after), key=lambda page: page.seq)
        return [_change(page) for page in changed[: max(0, limit)]]

    def scan(self) -> Iterator[Document]:
        for page in list(self._by_id):
            if page.record.version and not page.gone:
                yield _document(page, page.record.version)

    def _is_workable(self, site: _Site, now: float) -> bool:
        return site.record.rest_until <= now and any(
            page.record.visits == 0 or self._is_due(page, now) for page in site.pages
        )

    def _site(self, name: str) -> _Site:
        if name not in self._sites:
            self._sites[name] = _Site(len(self._sites) + 1, SiteRecord(name))
        return self._sites[name]

    def _hold(self, found: Found, found_on: int | None, now: float) -> bool:
        known = found.url in self._pages
        if known and not found.admit:
            return False
        if not holdable(found):
            self._refuse(refused_for(found, Reason.BAD_URL))
            return False
        site = self._site(found.site)
        if found.admit:
            site.record = replace(site.record, admitted=True)
        if known:
            return False
        if len(site.pages) >= self._limits.max_pages_per_site:
            self._refuse(refused_for(found, Reason.SITE_FULL))
            return False
        record = PageRecord(
            id=len(self._by_id) + 1,
            url=found.url,
            site=found.site,
            kind=found.kind,
            state=PageState.NEW,
            how=found.how,
            depth=found.depth,
            hops=found.hops,
            found_at=now,
            found_on=found_on,
            next_visit=now,
        )
        page = _Page(record, site, found.priority)
        self._pages[found.url] = page
        self._by_id.append(page)
        site.pages.append(page)
        site.due_again(now)
        return True

    def _refuse(self, refusal: Refusal) -> None:
        # Sites that are not held are counted together: pages can name any number of them.
        key = (refusal.site if refusal.site in self._sites else "", refusal.reason)
        n, example = self._refused.get(key, (0, example_of(refusal)))
        self._refused[key] = (n + 1, example)

    def _delay(self, site: _Site) -> float:
        return self._limits.delay if site.record.delay is None else site.record.delay

    def _lapse(self, now: float) -> None:
        for id, lease in self._leases.items():
            if lease.live and lease.expires_at <= now:
                lease.live = False
                page = self._by_id[id - 1]
                page.site.due_again(page.record.next_visit or 0.0)

    def _free(self, page: _Page) -> bool:
        lease = self._leases.get(page.record.id)
        return lease is None or not lease.live

    def _is_due(self, page: _Page, now: float) -> bool:
        return page.record.next_visit is not None and page.record.next_visit <= now

    def _peek(self, site: _Site, now: float, count: int) -> tuple[list[int], list[int]]:
        free = [page for page in site.pages if self._free(page)]
        new = sorted((page.priority, page.record.id) for page in free if page.record.visits == 0)
        due = sorted(
            (page.record.next_visit or 0.0, page.record.id)
            for page in free
            if page.record.visits and self._is_due(page, now)
        )
        return [id for _, id in new[:count]], [id for _, id in due[:count]]

    def _earliest(self, site: _Site) -> float | None:
        """When the site's next page that nobody holds is due; among new ones the first in order speaks."""
        free = [page for page in site.pages if self._free(page)]
        new = min(
            ((page.priority, page.record.id, page.record.found_at) for page in free if not page.record.visits),
            default=None,
        )
        due = [page.record.next_visit for page in free if page.record.visits and page.record.next_visit is not None]
        return min([*due, new[2]] if new else due, default=None)

    def _grant(self, page: _Page, expires_at: float) -> Lease:
        self._token += 1
        self._leases[page.record.id] = _Lease(self._token, expires_at)
        return Lease(page.record, self._token, expires_at)

    def _fenced(self, lease: Lease) -> bool:
        held = self._leases.get(lease.page.id)
        if held is None or held.token != lease.token:
            return False
        del self._leases[lease.page.id]
        return True

    def _settle(self, settled: Settled) -> bool:
        if not self._fenced(settled.lease):
            return False
        page = self._by_id[settled.lease.page.id - 1]
        self._update(page, settled)
        self._store(page, settled)
        if settled.next_visit is not None:
            page.site.due_again(settled.next_visit)
        for found in settled.found:
            self._hold(found, page.record.id, settled.visit.at)
        for refusal in settled.refused:
            self._refuse(refusal)
        return True

    def _update(self, page: _Page, settled: Settled) -> None:
        if met_content(settled):
            page.met_at = settled.visit.at
        if (validators := validators_after(settled)) is not None:
            page.record = replace(
                page.record,
                etag=validators.etag,
                last_modified=validators.last_modified,
                body_digest=validators.body_digest,
                text_digest=validators.text_digest,
            )
        page.record = replace(
            page.record,
            kind=settled.kind,
            state=settled.state,
            reason=settled.reason,
            visits=page.record.visits + 1,
            history=remember(page.record.history, settled.visit),
            interval=settled.interval,
            next_visit=settled.next_visit,
            failures=settled.failures,
        )

    def _store(self, page: _Page, settled: Settled) -> None:
        was_gone = page.gone
        if settled.version is not None:
            number = page.record.version + 1
            page.record = replace(page.record, version=number, sketch=settled.version.sketch)
            page.versions[number] = (settled.visit.at, _storable(settled.version))
            page.versions.pop(number - self._limits.keep_versions, None)
        if page.record.version == 0:
            return
        if is_removed(settled.state):
            page.gone = True
        elif settled.version is not None or settled.state is PageState.LIVE:
            page.gone = False
        if settled.version is not None or page.gone != was_gone:
            self._seq += 1
            page.seq = self._seq


def _storable(version: NewVersion) -> NewVersion:
    headers = tuple((plain_text(name), plain_text(value)) for name, value in version.headers)
    return replace(version, title=plain_text(version.title), headers=headers)


def _counted(pairs: Sequence[tuple[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for word, n in pairs:
        totals[str(word)] = totals.get(str(word), 0) + n
    return totals


def _change(page: _Page) -> Change:
    record = page.record
    document = None if page.gone else replace(_document(page, record.version), body=b"")
    shown = document if document is not None and document.searchable else None
    return Change(page.seq, record.id, record.url, record.site, shown)


def _document(page: _Page, number: int) -> Document:
    fetched_at, version = page.versions[number]
    current = number == page.record.version
    return Document(
        page_id=page.record.id,
        url=page.record.url,
        site=page.record.site,
        version=number,
        title=version.title,
        language=version.language,
        charset=version.charset,
        text=unpacked(version.text_zstd).decode("utf-8", "replace"),
        body=unpacked(version.body_zstd),
        status=version.status,
        headers=version.headers,
        fetched_at=fetched_at,
        checked_at=page.met_at if current else fetched_at,
        words=version.words,
        similarity=version.similarity,
        searchable=version.searchable,
        gone=page.gone,
    )
