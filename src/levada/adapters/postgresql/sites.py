"""What is known of each site? The `Sites` port on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from levada.adapters.page_rows import Row
from levada.adapters.postgresql.database import Database
from levada.adapters.postgresql.leasing import earliest_due
from levada.adapters.postgresql.patience import patient
from levada.adapters.postgresql.sites_in_hand import SitesInHand
from levada.adapters.site_rows import packed_robots, site_record
from levada.records import SiteRecord

__all__ = ["PostgresqlSites"]

_COLUMNS = """s.id, s.site, s.admitted, s.pages, s.failures, s.rest_until, s.delay, r.records
    FROM sites s LEFT JOIN robots r ON r.site_id = s.id"""
_REFUSED = """SELECT site_id, reason, n, example FROM refusals
    WHERE site_id = ANY(%s::bigint[])"""
_SAVE = "UPDATE sites SET failures = %s, rest_until = %s, delay = %s WHERE id = %s"
_SAVE_ROBOTS = """INSERT INTO robots (site_id, records) VALUES (%s, %s)
    ON CONFLICT (site_id) DO UPDATE SET records = excluded.records"""
_PAGE_OF_SITES = 200


class PostgresqlSites:
    def __init__(self, database: Database) -> None:
        self._database = database

    def site(self, site: str) -> SiteRecord | None:
        records = self._records(self._database.rows(f"SELECT {_COLUMNS} WHERE s.site = %s", (site,)))
        return records[0] if records else None

    @patient
    def save(self, record: SiteRecord) -> None:
        with self._database.write("save-site") as write:
            write.reach("site")
            sites = SitesInHand(write)
            sites.take_named([record.site])
            (site,) = sites.by_id.values()
            if record.admitted and not site.admitted:
                site.admitted = site.changed = True
            site.rest_until, site.delay = float(record.rest_until), record.delay
            write.execute(_SAVE, (record.failures, site.rest_until, site.delay, site.id))
            write.execute(_SAVE_ROBOTS, (site.id, packed_robots(record)))
            # Rest may have been set or ended: say anew when the site's next page may be had.
            site.set_turn(earliest_due(write, [site.id]).get(site.id))
            sites.save()

    def sites(self) -> Iterator[SiteRecord]:
        last = 0
        while rows := self._database.rows(
            f"SELECT {_COLUMNS} WHERE s.id > %s ORDER BY s.id LIMIT {_PAGE_OF_SITES}", (last,)
        ):
            last = rows[-1][0]
            yield from self._records(rows)

    def _records(self, rows: Sequence[Row]) -> list[SiteRecord]:
        refused: dict[int, list[Row]] = {row[0]: [] for row in rows}
        for site_id, *refusal in self._database.rows(_REFUSED, (list(refused),)) if rows else []:
            refused[site_id].append(tuple(refusal))
        return [site_record(row, sorted(refused[row[0]])) for row in rows]
