"""Which pages did somebody tell of, and when are they visited then? The `Notices` port on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence

from levada.adapters.expecting import changed_plans, earliest_by_site
from levada.adapters.keeping import is_news
from levada.adapters.page_rows import page_record
from levada.adapters.sqlite.database import Database
from levada.adapters.sqlite.holding import pull_turns
from levada.adapters.sqlite.rows import FROM_LISTED_PAGES, PAGE_COLUMNS
from levada.records import Notice, PageRecord, Said

__all__ = ["SqliteNotices"]

_MET = """SELECT p.url, p.id, v.met_at, v.told FROM json_each(?) listed CROSS JOIN pages p ON p.url = listed.value
    JOIN visited v ON v.page_id = p.id WHERE p.version > 0 AND p.gone = 0"""
_PAGES = f"SELECT {PAGE_COLUMNS} {FROM_LISTED_PAGES}"
_FREE = """SELECT v.page_id, v.site_id, v.visits, v.told, v.next_visit
    FROM json_each(?) listed CROSS JOIN visited v ON v.page_id = listed.value
    WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live)"""
_EXPECT = "UPDATE visited SET told = ?, next_visit = ? WHERE page_id = ?"
_LOOKED_UP_AT_ONCE = 1_000


class SqliteNotices:
    def __init__(self, database: Database) -> None:
        self._database = database

    def outdated(self, notices: Sequence[Notice]) -> list[PageRecord]:
        found: dict[int, PageRecord] = {}
        for start in range(0, len(notices), _LOOKED_UP_AT_ONCE):
            for page in self._outdated(notices[start : start + _LOOKED_UP_AT_ONCE]):
                found.setdefault(page.id, page)
        return list(found.values())

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Said, float | None]]) -> None:
        if not pages:
            return
        with self._database.write("bring-forward") as write:
            write.reach("pages")
            free = write.execute(_FREE, (json.dumps([page.id for page, _, _ in pages]),))
            changed = changed_plans(free, pages)
            write.executemany(_EXPECT, [(each.told, each.next_visit, each.id) for each in changed])
            write.reach("sites")
            pull_turns(write, earliest_by_site(changed))

    def _outdated(self, notices: Sequence[Notice]) -> list[PageRecord]:
        urls = json.dumps([notice.url for notice in notices])
        with self._database.read() as connection:
            met = {url: (id, met_at, Said(told)) for url, id, met_at, told in connection.execute(_MET, (urls,))}
            known = [(notice, *met[notice.url]) for notice in notices if notice.url in met]
            ids = [id for notice, id, met_at, told in known if is_news(notice, met_at, told)]
            return [page_record(row) for row in connection.execute(_PAGES, (json.dumps(ids),))]
