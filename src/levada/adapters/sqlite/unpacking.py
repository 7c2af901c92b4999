"""How does a page that comes from another shard take its place here?"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from levada.adapters.document_rows import version_row
from levada.adapters.keeping import first_token, nth_of
from levada.adapters.limits import StoreLimits
from levada.adapters.moving import MovedPage
from levada.adapters.page_rows import HOW_CODE, KIND_CODE, STATE_CODE, STATES, packed_history
from levada.adapters.site_rows import packed_robots
from levada.adapters.sqlite.database import Write
from levada.adapters.sqlite.holding import new_site
from levada.adapters.sqlite.leasing import FENCED

__all__ = ["Arrivals", "count_page", "fence_off"]

_FENCE = f"""INSERT INTO leases (page_id, token, expires_at, live) VALUES (?, ?, 0, {FENCED})
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = 0, live = {FENCED}
    WHERE live != {FENCED}"""  # noqa: S608
_SITE = "SELECT s.id, s.pages, n.n FROM sites s LEFT JOIN numbered n ON n.site_id = s.id WHERE s.site = ?"
_KEEP_SITE = """UPDATE sites SET pages = ?2, admitted = max(admitted, ?3), turn_at = max(turn_at, ?4),
    rest_until = max(rest_until, ?5), failures = max(failures, ?6), delay = coalesce(delay, ?7) WHERE id = ?1"""
_INSERT_PAGE = """INSERT INTO pages
    (id, site_id, url, kind, how, depth, hops, priority, found_at, found_on, version, seq, gone,
    etag, last_modified, body_digest, text_digest, sketch)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_INSERT_VISITED = """INSERT INTO visited
    (page_id, site_id, kind, state, visits, failures, met_at, interval, next_visit, reason, leads_to, told, history,
    memory) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_INSERT_VERSION = "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class _Site(msgspec.Struct):
    id: int
    pages: int
    numbered: int
    moved: MovedPage  # the one that came with the latest facts


class Arrivals:
    """Those of one transaction; `finish` writes what they leave with their sites."""

    def __init__(self, write: Write, limits: StoreLimits) -> None:
        self._write = write
        self._limits = limits
        self._sites: dict[str, _Site] = {}

    def take(self, moved: MovedPage) -> None:
        """A page that is here already stays as it is: its copy came before a crash."""
        page = moved.page
        if self._write.execute("SELECT 1 FROM pages WHERE id = ? OR url = ?", (page.id, page.url)).fetchone():
            return
        site = self._site(moved)
        site.pages += 1
        site.numbered = max(site.numbered, nth_of(page.id))  # so that no page of the site comes to be the same one
        self._insert(moved, site.id)
        fence_off(self._write, self._limits, [page.id])
        stored = page.version > 0 and not moved.gone
        count_page(
            self._write,
            STATE_CODE[page.state],
            1,
            is_new=not page.visits,
            versions=len(moved.versions),
            stored=stored,
        )

    def finish(self) -> None:
        for site in self._sites.values():
            record = site.moved.site
            row = (site.id, site.pages, record.admitted, site.moved.turn_at, record.rest_until)
            self._write.execute(_KEEP_SITE, (*row, record.failures, record.delay))
            self._write.execute("INSERT OR REPLACE INTO numbered VALUES (?, ?)", (site.id, site.numbered))

    def _site(self, moved: MovedPage) -> _Site:
        name = moved.page.site
        if name not in self._sites:
            row = self._write.execute(_SITE, (name,)).fetchone()
            if row is None:
                row = new_site(self._write, self._limits, name), 0, 0
                robots = (row[0], packed_robots(moved.site))
                self._write.execute("INSERT OR REPLACE INTO robots VALUES (?, ?)", robots)
            id, pages, numbered = row
            self._sites[name] = _Site(id, pages, pages if numbered is None else numbered, moved)
        return self._sites[name]

    def _insert(self, moved: MovedPage, site: int) -> None:
        write, page = self._write, moved.page
        seq = write.next_seq() if page.version else None
        found = (page.id, site, page.url, KIND_CODE[page.kind], HOW_CODE[page.how], page.depth, page.hops)
        known = (page.version, seq, moved.gone, page.etag, page.last_modified, page.body_digest, page.text_digest)
        write.execute(_INSERT_PAGE, (*found, moved.priority, page.found_at, page.found_on, *known, page.sketch))
        if page.visits:
            write.execute(_INSERT_VISITED, _visited_row(moved, site))
        else:
            write.execute("INSERT INTO unvisited VALUES (?, ?, ?)", (site, moved.priority, page.id))
        rows = [version_row(page.id, each.number, each.fetched_at, each.content) for each in moved.versions]
        write.executemany(_INSERT_VERSION, rows)
        write.execute("DELETE FROM departed WHERE page_id = ?", (page.id,))
        if page.version:
            write.execute("INSERT OR REPLACE INTO arrived VALUES (?, ?)", (page.id, page.version))


def fence_off(write: Write, limits: StoreLimits, ids: Iterable[int]) -> None:
    base = first_token(limits.shard)
    write.executemany(_FENCE, [(id, write.counters.add("token", base=base)) for id in ids])


def count_page(write: Write, state: int, one: int, *, is_new: bool, versions: int, stored: bool) -> None:
    """One page more, or one fewer."""
    write.counters.add(f"state.{STATES[state]}", one)
    write.counters.add("unvisited", one * bool(is_new))
    write.counters.add("versions", one * versions)
    write.counters.add("stored", one * stored)


def _visited_row(moved: MovedPage, site: int) -> tuple[object, ...]:
    page = moved.page
    return (
        page.id,
        site,
        KIND_CODE[page.kind],
        STATE_CODE[page.state],
        page.visits,
        page.failures,
        moved.met_at,
        page.interval,
        page.next_visit,
        page.reason,
        page.leads_to,
        page.told,
        packed_history(page.history),
        page.memory,
    )
