"""The frontier on SQLite: the dialect, and adding URLs under the one writer that SQLite allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence

from levada.core.reasons import Reason
from levada.core.records import FoundUrl, Refusal, VisitResult
from levada.store.base import StoreLimits
from levada.store.rows import HOW_CODE, KIND_CODE, Row
from levada.store.rules import first_site, is_full, page_number, plain_text, refused_for
from levada.store.sql.base import Dialect, HeldSite, HeldSites, KnownUrls
from levada.store.sql.statements import Statements
from levada.store.sql.writing import ELSEWHERE_ID, Intake
from levada.store.sqlite.database import SqliteWrite

FENCED = 2  # `live` of a page that moves to another shard: a lease that never expires
_LAST_SITE = "last-site"  # counts the numbers of sites that moved away: they are not used again


def listed(values: Iterable[int] | Iterable[str]) -> str:
    return json.dumps(list(values))


SQLITE = Statements(
    Dialect(
        written=str,
        greatest="max",
        among="{} IN (SELECT value FROM json_each(?))",
        ids="json_each(?) listed CROSS JOIN",  # CROSS keeps the order of the list
        in_order="",
        among_names="{} IN (SELECT value FROM json_each(?))",
        urls="FROM json_each(?) listed CROSS JOIN pages p ON p.url = listed.value",
        by_url="p.url = ?",
        url_range="p.url >= :low AND p.url < :high",
        url_order="ORDER BY p.url",
        documents="pages p",
        document="p",
        document_id="p.id",
        joined_document="",
        version="p.version",
        gone="p.gone",
        no_bytes="x''",
        leased="l.live = 1",
        fenced=f"l.live = {FENCED}",
        first_of_union="{first} UNION ALL {second} ORDER BY 1 LIMIT :limit",
        workable="""EXISTS (SELECT 1 FROM sites s WHERE s.rest_until <= :now AND (
            EXISTS (SELECT 1 FROM unvisited u WHERE u.site_id = s.id)
            OR EXISTS (SELECT 1 FROM visited v WHERE v.site_id = s.id AND v.next_visit <= :now)))""",
        size="(SELECT page_count FROM pragma_page_count()) * (SELECT page_size FROM pragma_page_size())",
        insert_page="""INSERT INTO pages (id, site_id, url, kind, how, depth, hops, priority, found_at, found_on)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        keep_validators="""UPDATE pages SET etag = ?2, last_modified = ?3, body_digest = ?4, text_digest = ?5
            WHERE id = ?1""",
        keep_document="""UPDATE pages SET etag = ?2, last_modified = ?3, body_digest = ?4, text_digest = ?5,
            version = ?6, gone = ?7, sketch = ?8, text_key = ?9, seq = ?10 WHERE id = ?1""",
        step="?",
        oldest_kept="{}",
        no_longer_new="""DELETE FROM unvisited WHERE (site_id, priority, page_id) IN (
            SELECT p.site_id, p.priority, p.id
            FROM json_each(?) listed CROSS JOIN pages p ON p.id = listed.value)""",
        forget_document=(),
        id_list=listed,
        name_list=lambda names: json.dumps(list(names)),
        url_list=lambda urls: (json.dumps(list(urls)),),
        url_key=lambda url: (plain_text(url),),
        page_row=tuple,
    )
)

_SITE = """SELECT s.id, s.site, s.admitted, s.pages, s.rest_until, s.delay, s.turn_at, s.taken, s.due_at,
    coalesce(n.n, s.pages), n.n IS NOT NULL FROM sites s LEFT JOIN numbered n ON n.site_id = s.id"""
_SITE_NAMED = f"{_SITE} WHERE s.site = ?"
_SITES_NUMBERED = f"{_SITE} WHERE s.id IN (SELECT value FROM json_each(?)) ORDER BY s.id"
_INSERT_SITE = f"""INSERT INTO sites (id, site) SELECT 1 + max(
    coalesce(max(id), 0), ?, coalesce((SELECT n FROM counters WHERE name = '{_LAST_SITE}'), 0)), ? FROM sites"""
_KEEP_SITE = "UPDATE sites SET admitted = ?, pages = ?, turn_at = ?, taken = ?, due_at = ? WHERE id = ?"
_HOLD = f"{SQLITE.insert_page} ON CONFLICT (url) DO NOTHING"


class SqliteSites(HeldSites[SqliteWrite]):
    """Site rows that are read when they are needed: this transaction is the only writer."""

    def __init__(self, write: SqliteWrite, limits: StoreLimits) -> None:
        super().__init__(write)
        self._limits = limits
        self._unknown: set[str] = set()
        self._numbered_apart: set[int] = set()  # sites whose pages have numbers beyond their count

    def named(self, name: str) -> HeldSite | None:
        site = self.by_name.get(name)
        if site is None and name not in self._unknown:
            self._take_apart(self._write.rows(_SITE_NAMED, (name,)))
            site = self.by_name.get(name)
            if site is None:
                self._unknown.add(name)
        return site

    def make(self, name: str) -> HeldSite:
        """Create a site."""
        id = self._write.execute(_INSERT_SITE, (first_site(self._limits.shard), name)).lastrowid or 0
        self._write.count("sites")
        site = HeldSite(id, name, False, 0, 0.0, None, 0.0, 0, None, 0)
        self.by_id[id] = self.by_name[name] = site
        return site

    def take_named(self, names: Collection[str]) -> None:
        for name in names:
            if self.named(name) is None:
                self.make(name).is_new = True

    def lock_named(self, names: Iterable[str]) -> None:
        for name in names:
            self.named(name)

    def lock_numbered(self, ids: Iterable[int], *, wait: bool = True) -> list[int]:
        return [site.id for site in self._take_apart(self._write.rows(_SITES_NUMBERED, (listed(ids),)))]

    def drop(self, site: HeldSite) -> None:
        del self.by_id[site.id], self.by_name[site.site]
        self._write.take(_LAST_SITE, site.id, 0)
        self._write.count("sites", -1)
        self._write.execute("DELETE FROM numbered WHERE site_id = ?", (site.id,))
        self._write.execute("DELETE FROM sites WHERE id = ?", (site.id,))

    def save(self) -> None:
        changed = self.changed()
        self._write.executemany(
            _KEEP_SITE,
            [(each.admitted, each.pages, each.turn_at, each.taken, each.due_at, each.id) for each in changed],
        )
        apart = [each for each in changed if each.numbered != each.pages or each.id in self._numbered_apart]
        if apart:
            rows = [(each.id, each.numbered) for each in apart]
            self._write.executemany("INSERT OR REPLACE INTO numbered VALUES (?, ?)", rows)

    def _take_apart(self, rows: Sequence[Row]) -> list[HeldSite]:
        self._numbered_apart.update(row[0] for row in rows if row[-1])
        return self._take([row[:-1] for row in rows])


class SqliteIntake(Intake[SqliteWrite]):
    """Inserts each URL as it comes; the index of URLs says which are new."""

    _sites: SqliteSites

    def __init__(self, write: SqliteWrite, limits: StoreLimits, known: KnownUrls) -> None:
        super().__init__(write, SQLITE, limits, known)
        self._sites = SqliteSites(write, limits)

    def prepare_visits(self, visits: Sequence[VisitResult], ask: Callable[[], None]) -> None:
        fresh = (each for result in visits for each in result.found if each.url not in self._known)
        self.tombstones.look_up((each.url, each.site) for each in fresh)
        ask()

    def hold(self, found: FoundUrl, found_on: int | None, now: float) -> bool:
        if found.url in self._known and not found.admit:
            return False
        if not self.may_hold(found):
            return False
        site = self._sites.named(found.site) or self._sites.make(found.site)
        if found.admit:
            site.admit()
        if is_full(site.pages, self._limits.most_pages(found.site)):
            if self._write.execute("SELECT 1 FROM pages WHERE url = ?", (found.url,)).fetchone() is None:
                self.refuse(refused_for(found, Reason.SITE_FULL))
            return False
        self.held.append(found.url)
        id = page_number(site.id, site.numbered + 1)
        row = (id, site.id, found.url, KIND_CODE[found.kind], HOW_CODE[found.how], found.depth, found.hops)
        if self._write.execute(_HOLD, (*row, found.priority, now, found_on)).rowcount == 0:
            return False
        self._pages.append((site.id, found.priority, id))
        site.add_page(now)
        return True

    def refuse(self, refusal: Refusal) -> None:
        site = self._sites.named(refusal.site)
        self._count_refusal(site.id if site else ELSEWHERE_ID, refusal)

    def site_id(self, name: str) -> int:
        site = self._sites.named(name)
        assert site is not None  # it has a leased page
        return site.id

    def due_again(self, site: str, at: float) -> None:
        known = self._sites.named(site)
        if known is not None:
            known.pull(at)

    def _write_pages(self) -> None:
        self._write.executemany(SQLITE.insert_unvisited, self._pages)
