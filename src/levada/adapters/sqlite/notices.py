"""Which pages did somebody tell of, and when are they visited then? The `Notices` port on SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from levada.adapters.keeping import brought_forward, is_news
from levada.adapters.sqlite.database import Database, Write
from levada.adapters.sqlite.holding import pull_turns
from levada.adapters.sqlite.rows import FROM_LISTED_PAGES, PAGE_COLUMNS, page_record
from levada.records import Notice, PageRecord, Said

__all__ = ["SqliteNotices"]

_MET = """SELECT p.url, p.id, v.met_at, v.told FROM json_each(?) listed CROSS JOIN pages p ON p.url = listed.value
    JOIN visited v ON v.page_id = p.id WHERE p.version > 0 AND p.gone = 0"""
_PAGES = f"SELECT {PAGE_COLUMNS} {FROM_LISTED_PAGES}"
_FREE = """SELECT v.page_id, v.site_id, v.visits, v.told, v.next_visit
    FROM json_each(?) listed CROSS JOIN visited v ON v.page_id = listed.value
    WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live = 1)"""
_EXPECT = "UPDATE visited SET told = ?, next_visit = ? WHERE page_id = ?"
_LOOKED_UP_AT_ONCE = 1_000


@dataclass
class _Planned:
    """What is planned for a page that nobody holds."""

    id: int
    site_id: int
    visits: int
    told: Said
    next_visit: float | None
    changed: bool = False
    moved: bool = False

    def expect(self, said: Said, at: float | None) -> None:
        told, next_visit = self.told | said, brought_forward(self.next_visit, at)
        self.moved |= next_visit != self.next_visit
        self.changed |= self.moved or told != self.told
        self.told, self.next_visit = told, next_visit


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
            changed = [each for each in _expected(write, pages) if each.changed]
            write.executemany(_EXPECT, [(each.told, each.next_visit, each.id) for each in changed])
            write.reach("sites")
            pull_turns(write, _earliest_by_site(each for each in changed if each.moved))

    def _outdated(self, notices: Sequence[Notice]) -> list[PageRecord]:
        urls = json.dumps([notice.url for notice in notices])
        with self._database.read() as connection:
            met = {url: (id, met_at, Said(told)) for url, id, met_at, told in connection.execute(_MET, (urls,))}
            known = [(notice, *met[notice.url]) for notice in notices if notice.url in met]
            ids = [id for notice, id, met_at, told in known if is_news(notice, met_at, told)]
            return [page_record(row) for row in connection.execute(_PAGES, (json.dumps(ids),))]


def _expected(write: Write, pages: Sequence[tuple[PageRecord, Said, float | None]]) -> Iterable[_Planned]:
    """The plans for those of the pages that are still as they were known, with what was told of them."""
    rows = write.execute(_FREE, (json.dumps([page.id for page, _, _ in pages]),))
    plans = {id: _Planned(id, site, visits, Said(told), at) for id, site, visits, told, at in rows}
    for page, said, at in pages:
        plan = plans.get(page.id)
        if plan is not None and plan.visits == page.visits:
            plan.expect(said, at)
    return plans.values()


def _earliest_by_site(plans: Iterable[_Planned]) -> list[tuple[float, int]]:
    earliest: dict[int, float] = {}
    for plan in plans:
        if plan.next_visit is not None:
            earliest[plan.site_id] = min(plan.next_visit, earliest.get(plan.site_id, plan.next_visit))
    return [(at, site) for site, at in earliest.items()]
