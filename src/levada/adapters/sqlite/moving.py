"""How does a page leave this shard, and how does another come in? The `Movers` of a shard on SQLite."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from levada.adapters.limits import StoreLimits
from levada.adapters.moving import MovedPage
from levada.adapters.sqlite.database import Database, Write
from levada.adapters.sqlite.holding import ELSEWHERE_ID, LAST_SITE, pull_turns
from levada.adapters.sqlite.leasing import FENCED
from levada.adapters.sqlite.packing import packed_pages
from levada.adapters.sqlite.unpacking import Arrivals, count_page, fence_off

__all__ = ["SqliteMovers"]

_FREE = f"""SELECT p.id FROM json_each(?) listed CROSS JOIN pages p ON p.url = listed.value
    WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = p.id AND l.live AND l.live != {FENCED})"""  # noqa: S608
_FENCED = f"""SELECT l.page_id, p.url FROM leases l JOIN pages p ON p.id = l.page_id
    WHERE l.live = {FENCED} ORDER BY l.page_id"""  # noqa: S608
_LEAVING = f"""SELECT p.id, p.site_id, p.url, s.site, p.version, p.gone, coalesce(v.state, 0), v.page_id IS NULL
    FROM json_each(?) listed CROSS JOIN pages p ON p.id = listed.value JOIN sites s ON s.id = p.site_id
    JOIN leases l ON l.page_id = p.id AND l.live = {FENCED} LEFT JOIN visited v ON v.page_id = p.id"""  # noqa: S608
_FORGET = (
    "DELETE FROM versions WHERE page_id = ?",
    "DELETE FROM visited WHERE page_id = ?",
    """DELETE FROM unvisited WHERE page_id = ?1
    AND (site_id, priority) IN (SELECT site_id, priority FROM pages WHERE id = ?1)""",
    "DELETE FROM leases WHERE page_id = ?",
    "DELETE FROM arrived WHERE page_id = ?",
    "DELETE FROM pages WHERE id = ?",
)
_DUE_OF = f"""SELECT coalesce(v.next_visit, p.found_at), p.site_id FROM json_each(?) listed
    CROSS JOIN leases l ON l.page_id = listed.value AND l.live = {FENCED}
    JOIN pages p ON p.id = l.page_id LEFT JOIN visited v ON v.page_id = p.id
    WHERE v.page_id IS NULL OR v.next_visit IS NOT NULL"""  # noqa: S608
_SITE_LEFT = """UPDATE sites SET pages = pages - ?2 WHERE id = ?1 RETURNING pages"""
_NUMBERED = """INSERT INTO numbered SELECT id, pages FROM sites WHERE id = ? ON CONFLICT DO NOTHING"""
_REFUSED_ELSEWHERE = f"""INSERT INTO refusals SELECT {ELSEWHERE_ID}, reason, n, example FROM refusals
    WHERE site_id = ? ON CONFLICT (site_id, reason) DO UPDATE SET n = n + excluded.n"""  # noqa: S608


class SqliteMovers:
    def __init__(self, database: Database, limits: StoreLimits) -> None:
        self._database = database
        self._limits = limits

    def fence(self, urls: Sequence[str]) -> list[MovedPage]:
        with self._database.write("fence") as write:
            write.reach("pages")
            ids = [id for (id,) in write.execute(_FREE, (json.dumps(list(urls)),))]
            fence_off(write, self._limits, ids)
            return packed_pages(write.connection, ids)

    def take_in(self, pages: Sequence[MovedPage]) -> None:
        if not pages:
            return
        with self._database.write("take-in") as write:
            write.reach("pages")
            arrivals = Arrivals(write, self._limits)
            for page in pages:
                arrivals.take(page)
            write.reach("sites")
            arrivals.finish()

    def let_go(self, page_ids: Sequence[int]) -> None:
        if not page_ids:
            return
        with self._database.unchecked(), self._database.write("let-go") as write:
            write.reach("pages")
            left = _forget(write, page_ids)
            write.reach("sites")
            for site, count in left.items():
                _leave(write, site, count)

    def open_up(self, page_ids: Sequence[int]) -> None:
        if not page_ids:
            return
        with self._database.write("open-up") as write:
            write.reach("pages")
            due = write.execute(_DUE_OF, (json.dumps(list(page_ids)),)).fetchall()
            free = f"DELETE FROM leases WHERE page_id = ? AND live = {FENCED}"  # noqa: S608
            write.executemany(free, [(id,) for id in page_ids])
            pull_turns(write, due)

    def fenced(self) -> list[tuple[int, str]]:
        return [(id, url) for id, url in self._database.rows(_FENCED)]

    def urls_after(self, page_id: int, limit: int) -> list[tuple[int, str]]:
        rows = self._database.rows("SELECT id, url FROM pages WHERE id > ? ORDER BY id LIMIT ?", (page_id, limit))
        return [(id, url) for id, url in rows]


def _forget(write: Write, page_ids: Sequence[int]) -> Counter[int]:
    """Whatever is held of these pages goes; how many each site had of them."""
    left: Counter[int] = Counter()
    for id, site, url, name, version, gone, state, is_new in write.execute(
        _LEAVING, (json.dumps(list(page_ids)),)
    ).fetchall():
        left[site] += 1
        kept = write.execute("SELECT count(*) FROM versions WHERE page_id = ?", (id,)).fetchone()[0]
        for statement in _FORGET:
            write.execute(statement, (id,))
        if version:
            row = (id, write.next_seq(), url, name)
            write.execute("INSERT OR REPLACE INTO departed VALUES (?, ?, ?, ?)", row)
        count_page(write, state, -1, is_new=is_new, versions=kept, stored=bool(version and not gone))
    return left


def _leave(write: Write, site: int, count: int) -> None:
    """A site without pages goes too, and what it refused is counted under none; its number is not given again."""
    write.execute(_NUMBERED, (site,))
    (pages,) = write.execute(_SITE_LEFT, (site, count)).fetchone()
    if pages:
        return
    write.counters.at_least(LAST_SITE, site)
    write.counters.add("sites", -1)
    write.execute(_REFUSED_ELSEWHERE, (site,))
    for statement in (
        "DELETE FROM refusals WHERE site_id = ?",
        "DELETE FROM robots WHERE site_id = ?",
        "DELETE FROM numbered WHERE site_id = ?",
        "DELETE FROM sites WHERE id = ?",
    ):
        write.execute(statement, (site,))
