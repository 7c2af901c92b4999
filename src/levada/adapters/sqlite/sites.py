"""What is known of each site? The `Sites` port on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

from levada.adapters.keeping import plain_text
from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import Row
from levada.adapters.site_rows import packed_robots, site_record
from levada.adapters.sqlite.database import Database, Write
from levada.adapters.sqlite.holding import new_site
from levada.adapters.sqlite.leasing import earliest_due
from levada.records import SiteRecord

__all__ = ["SqliteSites"]

_COLUMNS = """s.id, s.site, s.admitted, s.pages, s.failures, s.rest_until, s.delay, r.records
    FROM sites s LEFT JOIN robots r ON r.site_id = s.id"""
_SAVE = """UPDATE sites SET admitted = max(admitted, ?2), failures = ?3, rest_until = ?4, delay = ?5
    WHERE id = ?1"""
_SAVE_ROBOTS = """INSERT INTO robots (site_id, records) VALUES (?, ?)
    ON CONFLICT (site_id) DO UPDATE SET records = excluded.records"""
_PAGE_OF_SITES = 200


class SqliteSites:
    def __init__(self, database: Database, limits: StoreLimits) -> None:
        self._database = database
        self._limits = limits

    def site(self, site: str) -> SiteRecord | None:
        rows = self._database.rows(f"SELECT {_COLUMNS} WHERE s.site = ?", (plain_text(site),))
        return self._record(rows[0]) if rows else None

    def save(self, record: SiteRecord) -> None:
        with self._database.write("save-site") as write:
            write.reach("site")
            known = write.execute("SELECT id FROM sites WHERE site = ?", (record.site,)).fetchone()
            id = known[0] if known else new_site(write, self._limits, record.site)
            write.execute(_SAVE, (id, record.admitted, record.failures, record.rest_until, record.delay))
            write.execute(_SAVE_ROBOTS, (id, packed_robots(record)))
            _set_turn(write, id)

    def sites(self) -> Iterator[SiteRecord]:
        last = 0
        while rows := self._database.rows(
            f"SELECT {_COLUMNS} WHERE s.id > ? ORDER BY s.id LIMIT {_PAGE_OF_SITES}", (last,)
        ):
            last = rows[-1][0]
            yield from map(self._record, rows)

    def _record(self, row: Row) -> SiteRecord:
        refused = self._database.rows(
            "SELECT reason, n, example FROM refusals WHERE site_id = ? ORDER BY reason", (row[0],)
        )
        return site_record(row, refused)


def _set_turn(write: Write, site: int) -> None:
    """Rest may have been set or ended: say anew when the site's next page may be had."""
    write.execute(
        "UPDATE sites SET due_at = max(?1, turn_at, rest_until) WHERE id = ?2", (earliest_due(write, site), site)
    )
