"""How does a page leave this shard, and how does another come in? The `Movers` of a shard on PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from levada.adapters.moving import MovedPage
from levada.adapters.page_rows import STATES
from levada.adapters.postgresql.database import Database, Write
from levada.adapters.postgresql.holding import ELSEWHERE_ID
from levada.adapters.postgresql.packing import packed_pages
from levada.adapters.postgresql.page_columns import LISTED_URLS, urls_listed
from levada.adapters.postgresql.sites_in_hand import SitesInHand
from levada.adapters.postgresql.unpacking import count_page, fence_off, take_pages

__all__ = ["PostgresqlMovers"]

_FOUND = f"SELECT p.id, p.site_id {LISTED_URLS}"
_FREE = """SELECT p.id FROM unnest(%s::bigint[]) WITH ORDINALITY listed(id, place) JOIN pages p ON p.id = listed.id
    WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = p.id AND l.live AND NOT l.fenced)
    ORDER BY listed.place"""
_FENCED = """SELECT l.page_id, p.url FROM leases l JOIN pages p ON p.id = l.page_id
    WHERE l.fenced ORDER BY l.page_id"""
_FENCED_SITES = "SELECT DISTINCT site_id FROM leases WHERE page_id = ANY(%s::bigint[]) AND fenced"
_LEAVING = """SELECT p.id, p.site_id, p.url, s.site, coalesce(d.version, 0), coalesce(d.gone, false),
    coalesce(v.state, 0), v.page_id IS NULL, (SELECT count(*) FROM versions o WHERE o.page_id = p.id)
    FROM leases l JOIN pages p ON p.id = l.page_id JOIN sites s ON s.id = p.site_id
    LEFT JOIN visited v ON v.page_id = p.id LEFT JOIN documents d ON d.page_id = p.id
    WHERE l.page_id = ANY(%s::bigint[]) AND l.fenced ORDER BY p.id"""
_FORGET = (
    "DELETE FROM versions WHERE page_id = ANY(%s::bigint[])",
    "DELETE FROM visited WHERE page_id = ANY(%s::bigint[])",
    """DELETE FROM unvisited u USING unnest(%s::bigint[]) listed(id) JOIN pages p ON p.id = listed.id
    WHERE u.site_id = p.site_id AND u.priority = p.priority AND u.page_id = p.id""",
    "DELETE FROM leases WHERE page_id = ANY(%s::bigint[])",
    "DELETE FROM arrived WHERE page_id = ANY(%s::bigint[])",
    "DELETE FROM documents WHERE page_id = ANY(%s::bigint[])",
    "DELETE FROM pages WHERE id = ANY(%s::bigint[])",
)
_DEPARTED = """INSERT INTO departed (page_id, seq, url, site) VALUES (%s, %s, %s, %s)
    ON CONFLICT (page_id) DO UPDATE SET seq = excluded.seq"""
_DUE_OF = """SELECT coalesce(v.next_visit, p.found_at), p.site_id FROM leases l JOIN pages p ON p.id = l.page_id
    LEFT JOIN visited v ON v.page_id = p.id WHERE l.page_id = ANY(%s::bigint[]) AND l.fenced
    AND (v.page_id IS NULL OR v.next_visit IS NOT NULL)"""
_OPEN = "DELETE FROM leases WHERE page_id = ANY(%s::bigint[]) AND fenced"
_REFUSED = """SELECT reason, sum(n)::bigint, min(example) FROM refusals WHERE site_id = ANY(%s::bigint[])
    GROUP BY reason ORDER BY reason"""
_REFUSED_ELSEWHERE = """INSERT INTO refusals (site_id, reason, n, example) VALUES (%s, %s, %s, %s)
    ON CONFLICT (site_id, reason) DO UPDATE SET n = refusals.n + excluded.n"""


class PostgresqlMovers:
    def __init__(self, database: Database) -> None:
        self._database = database

    def fence(self, urls: Sequence[str]) -> list[MovedPage]:
        with self._database.write("fence") as write:
            write.reach("pages")
            found = write.rows(_FOUND, urls_listed(list(dict.fromkeys(urls))))
            SitesInHand(write).lock_numbered({site for _, site in found})
            ids = [id for (id,) in write.rows(_FREE, ([id for id, _ in found],))]
            fence_off(write, ids)
            return packed_pages(write, ids)

    def take_in(self, pages: Sequence[MovedPage]) -> None:
        if not pages:
            return
        with self._database.write("take-in") as write:
            take_pages(write, pages)

    def let_go(self, page_ids: Sequence[int]) -> None:
        if not page_ids:
            return
        with self._database.write("let-go") as write:
            _let_go(write, list(page_ids))

    def open_up(self, page_ids: Sequence[int]) -> None:
        if not page_ids:
            return
        with self._database.write("open-up") as write:
            write.reach("pages")
            sites = _fenced_sites(write, page_ids)
            due = write.rows(_DUE_OF, (list(page_ids),))
            write.execute(_OPEN, (list(page_ids),))
            for at, site in due:
                sites.by_id[site].pull(at)
            sites.save()

    def fenced(self) -> list[tuple[int, str]]:
        return [(id, url) for id, url in self._database.rows(_FENCED)]

    def urls_after(self, page_id: int, limit: int) -> list[tuple[int, str]]:
        rows = self._database.rows(
            "SELECT id, url FROM pages WHERE id > %s ORDER BY id LIMIT %s", (page_id, max(0, limit))
        )
        return [(id, url) for id, url in rows]


def _fenced_sites(write: Write, page_ids: Sequence[int]) -> SitesInHand:
    sites = SitesInHand(write)
    sites.lock_numbered([site for (site,) in write.rows(_FENCED_SITES, (list(page_ids),))])
    return sites


def _let_go(write: Write, page_ids: list[int]) -> None:
    write.reach("pages")
    sites = _fenced_sites(write, page_ids)
    leaving = write.rows(_LEAVING, (page_ids,))
    for _, _, _, _, version, gone, state, is_new, kept in leaving:
        count_page(write, STATES[state], -1, is_new=is_new, versions=kept, stored=bool(version and not gone))
    ids = [row[0] for row in leaving]
    for statement in _FORGET:
        write.execute(statement, (ids,))
    write.reach("sites")
    for site, count in Counter(row[1] for row in leaving).items():
        sites.by_id[site].pages -= count
        sites.by_id[site].changed = True
    _drop_empty(write, sites)
    sites.save()
    _say_departed(write, [(row[0], row[2], row[3]) for row in leaving if row[4]])


def _drop_empty(write: Write, sites: SitesInHand) -> None:
    """A site without pages goes too, and what it refused is counted under none; its number is not given again."""
    empty = [site for site in sites.by_id.values() if not site.pages]
    ids = [site.id for site in empty]
    if not ids:
        return
    refused = write.rows(_REFUSED, (ids,))
    write.executemany(_REFUSED_ELSEWHERE, [(ELSEWHERE_ID, *row) for row in refused])
    write.execute("DELETE FROM refusals WHERE site_id = ANY(%s::bigint[])", (ids,))
    write.execute("DELETE FROM robots WHERE site_id = ANY(%s::bigint[])", (ids,))
    for site in empty:
        sites.drop(site)


def _say_departed(write: Write, departed: Sequence[tuple[int, str, str]]) -> None:
    steps = write.take_steps(len(departed))
    write.executemany(
        _DEPARTED, [(id, seq, url, site) for seq, (id, url, site) in zip(steps, departed, strict=True)]
    )
