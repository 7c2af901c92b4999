"""Which URLs are held, and what was refused? The part of a transaction that takes in what was found."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from levada.adapters.keeping import example_of, first_site, holdable, is_full, page_number, refused_for
from levada.adapters.known_urls import KnownUrls
from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import HOW_CODE, KIND_CODE, Row
from levada.adapters.sqlite.database import Write
from levada.reasons import Reason
from levada.records import Found, PageState, Refusal

__all__ = ["ELSEWHERE_ID", "LAST_SITE", "Holding", "SiteRow", "new_site", "pull_turns"]

ELSEWHERE_ID = 0
"""The site under which refusals of sites that are not held are counted: pages can name any number of them."""

LAST_SITE = "last-site"
"""The counter that says which numbers sites had that moved away: they are not given again."""

_INSERT_PAGE = """INSERT INTO pages
    (id, site_id, url, kind, how, depth, hops, priority, found_at, found_on)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (url) DO NOTHING"""
_SITE = """SELECT s.id, s.pages, s.admitted, n.n FROM sites s LEFT JOIN numbered n ON n.site_id = s.id
    WHERE s.site = ?"""
_INSERT_SITE = "INSERT INTO sites (id, site) SELECT max(coalesce(max(id), 0), ?) + 1, ? FROM sites"
_COUNT_REFUSAL = """INSERT INTO refusals (site_id, reason, n, example) VALUES (?, ?, ?, ?)
    ON CONFLICT (site_id, reason) DO UPDATE SET n = n + excluded.n"""
_PULL_TURN = """UPDATE sites SET due_at = max(?1, turn_at, rest_until)
    WHERE id = ?2 AND (due_at IS NULL OR due_at > max(?1, turn_at, rest_until))"""

_encode = msgspec.msgpack.Encoder().encode


class SiteRow(msgspec.Struct):
    id: int
    pages: int
    admitted: bool
    numbered: int | None = None  # pages, where some moved away or came from another shard
    due_at: float | None = None  # the earliest of the pages that this transaction made due
    changed: bool = False

    def due_again(self, at: float) -> None:
        self.due_at = at if self.due_at is None else min(self.due_at, at)


def pull_turns(write: Write, due: Iterable[tuple[float, int]]) -> None:
    """Pages of these sites (time, site id) became due: their turn comes no later, but never before its time."""
    write.executemany(_PULL_TURN, due)


def new_site(write: Write, limits: StoreLimits, name: str) -> int:
    """The number of a site that was not held so far."""
    after = max(first_site(limits.shard), write.counters.total(LAST_SITE))
    write.counters.add("sites")
    return write.execute(_INSERT_SITE, (after, name)).lastrowid or 0


class Holding:
    """What one transaction has found, counted and touched; `finish` writes the sums."""

    def __init__(self, write: Write, limits: StoreLimits, known: KnownUrls) -> None:
        self.held: list[str] = []  # known to be stored once this transaction is committed
        self._write = write
        self._limits = limits
        self._known = known
        self._sites: dict[str, SiteRow | None] = {}
        self._unvisited: list[Row] = []
        self._forwarded: list[Row] = []
        self._refused: dict[tuple[int, Reason], list[int | str]] = {}

    def hold(self, found: Found, found_on: int | None, now: float) -> bool:
        """Hold this URL; whether it was new."""
        if found.url in self._known and not found.admit:
            return False
        if not holdable(found):
            self.refuse(refused_for(found, Reason.BAD_URL))
            return False
        site = self._admitting_site(found)
        if is_full(site.pages, self._limits.max_pages_per_site):
            return self._refuse_if_new(found)
        self.held.append(found.url)
        id = page_number(site.id, (site.pages if site.numbered is None else site.numbered) + 1)
        row = (id, site.id, found.url, KIND_CODE[found.kind], HOW_CODE[found.how], found.depth, found.hops)
        inserted = self._write.execute(_INSERT_PAGE, (*row, found.priority, now, found_on))
        if inserted.rowcount == 0:
            return False
        self._unvisited.append((site.id, found.priority, id))
        site.pages += 1
        if site.numbered is not None:
            site.numbered += 1
        site.changed = True
        site.due_again(now)
        return True

    def forward(self, found: Found, found_on: int, at: float) -> None:
        """Leave this URL in the outbox, for the shard that is to hold it."""
        self._forwarded.append((_encode(found), found_on, at))

    def refuse(self, refusal: Refusal) -> None:
        site = self.site(refusal.site)
        key = (site.id if site else ELSEWHERE_ID, refusal.reason)
        if key in self._refused:
            self._refused[key][0] += 1  # type: ignore[operator]
        else:
            self._refused[key] = [1, example_of(refusal)]

    def site(self, name: str) -> SiteRow | None:
        if name not in self._sites:
            row = self._write.execute(_SITE, (name,)).fetchone()
            self._sites[name] = SiteRow(*row) if row else None
        return self._sites[name]

    def finish(self) -> None:
        if self._unvisited:
            self._write.executemany("INSERT INTO unvisited VALUES (?, ?, ?)", self._unvisited)
            self._write.counters.add("unvisited", len(self._unvisited))
            self._write.counters.add(f"state.{PageState.NEW}", len(self._unvisited))
        self._write.executemany("INSERT INTO outbox (found, found_on, at) VALUES (?, ?, ?)", self._forwarded)
        sites = [site for site in self._sites.values() if site is not None]
        self._write.executemany(
            "UPDATE sites SET pages = ?, admitted = ? WHERE id = ?",
            [(site.pages, site.admitted, site.id) for site in sites if site.changed],
        )
        self._write.executemany(
            "INSERT OR REPLACE INTO numbered VALUES (?, ?)",
            [(site.id, site.numbered) for site in sites if site.changed and site.numbered is not None],
        )
        pull_turns(self._write, [(site.due_at, site.id) for site in sites if site.due_at is not None])
        self._write.executemany(_COUNT_REFUSAL, [(*key, *count) for key, count in self._refused.items()])
        for (_, reason), (n, _) in self._refused.items():
            self._write.counters.add(f"refused.{reason}", int(n))

    def _admitting_site(self, found: Found) -> SiteRow:
        site = self.site(found.site)
        if site is None:
            site = self._sites[found.site] = SiteRow(new_site(self._write, self._limits, found.site), 0, False)
        if found.admit and not site.admitted:
            site.admitted = site.changed = True
        return site

    def _refuse_if_new(self, found: Found) -> bool:
        if self._write.execute("SELECT 1 FROM pages WHERE url = ?", (found.url,)).fetchone() is None:
            self.refuse(refused_for(found, Reason.SITE_FULL))
        return False
