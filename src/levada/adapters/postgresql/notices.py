"""Which pages did somebody tell of, and when are they visited then? The `Notices` port on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from levada.adapters.expecting import changed_plans, earliest_by_site
from levada.adapters.keeping import is_news
from levada.adapters.page_rows import page_record
from levada.adapters.postgresql.database import Database
from levada.adapters.postgresql.page_columns import FROM_LISTED_PAGES, LISTED_URLS, PAGE_COLUMNS, urls_listed
from levada.adapters.postgresql.patience import patient
from levada.adapters.postgresql.sites_in_hand import SitesInHand
from levada.records import Notice, PageRecord, Said

__all__ = ["PostgresqlNotices"]

_MET = f"""SELECT p.url, p.id, v.met_at, v.told {LISTED_URLS}
    JOIN visited v ON v.page_id = p.id JOIN documents d ON d.page_id = p.id WHERE d.version > 0 AND NOT d.gone"""
_PAGES = f"SELECT {PAGE_COLUMNS} {FROM_LISTED_PAGES}"
_FREE = """SELECT v.page_id, v.site_id, v.visits, v.told, v.next_visit FROM visited v
    WHERE v.page_id = ANY(%s::bigint[])
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live)"""
_EXPECT = "UPDATE visited SET told = %s, next_visit = %s WHERE page_id = %s"
_LOOKED_UP_AT_ONCE = 1_000


class PostgresqlNotices:
    def __init__(self, database: Database) -> None:
        self._database = database

    def outdated(self, notices: Sequence[Notice]) -> list[PageRecord]:
        found: dict[int, PageRecord] = {}
        for start in range(0, len(notices), _LOOKED_UP_AT_ONCE):
            for page in self._outdated(notices[start : start + _LOOKED_UP_AT_ONCE]):
                found.setdefault(page.id, page)
        return list(found.values())

    @patient
    def bring_forward(self, pages: Sequence[tuple[PageRecord, Said, float | None]]) -> None:
        if not pages:
            return
        with self._database.write("bring-forward") as write:
            write.reach("pages")
            sites = SitesInHand(write)
            sites.lock_named({page.site for page, _, _ in pages})
            changed = changed_plans(write.rows(_FREE, ([page.id for page, _, _ in pages],)), pages)
            write.executemany(_EXPECT, [(each.told, each.next_visit, each.id) for each in changed])
            write.reach("sites")
            for at, site in earliest_by_site(changed):
                sites.by_id[site].pull(at)
            sites.save()

    def _outdated(self, notices: Sequence[Notice]) -> list[PageRecord]:
        rows = self._database.rows(_MET, urls_listed([notice.url for notice in notices]))
        met = {url: (id, met_at, Said(told)) for url, id, met_at, told in rows}
        known = [(notice, *met[notice.url]) for notice in notices if notice.url in met]
        ids = [id for notice, id, met_at, told in known if is_news(notice, met_at, told)]
        return [page_record(row) for row in self._database.rows(_PAGES, (ids,))] if ids else []
