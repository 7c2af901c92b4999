"""The frontier on SQLite: the dialect, adding URLs and leasing pages, under the one writer that SQLite allows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from levada.core.reasons import Reason
from levada.core.records import FoundUrl, Lease, PageState, Refusal
from levada.store.base import StoreLimits
from levada.store.fair_leasing import Portion, SiteTurn, first_portions
from levada.store.rows import HOW_CODE, KIND_CODE, Row, page_record
from levada.store.rules import first_site, first_token, holdable, is_full, page_number, plain_text, refused_for
from levada.store.sql.base import Dialect, HeldSite, HeldSites, KnownUrls
from levada.store.sql.statements import Statements
from levada.store.sql.writing import ELSEWHERE_ID, EVER, Intake
from levada.store.sqlite.database import SqliteWrite

FENCED = 2  # `live` of a page that moves to another shard: a lease that never expires
_LAST_SITE = "last-site"  # counts the numbers of sites that moved away: they are not used again


def _list(numbers: Iterable[int]) -> str:
    return json.dumps(list(numbers))


SQLITE = Statements(
    Dialect(
        written=str,
        greatest="max",
        among="{} IN (SELECT value FROM json_each(?))",
        ids="json_each(?) listed CROSS JOIN",  # CROSS keeps the order of the list
        in_order="",
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
            version = ?6, gone = ?7, sketch = ?8, seq = ?9 WHERE id = ?1""",
        no_longer_new="""DELETE FROM unvisited WHERE (site_id, priority, page_id) IN (
            SELECT p.site_id, p.priority, p.id
            FROM json_each(?) listed CROSS JOIN pages p ON p.id = listed.value)""",
        forget_document=(),
        id_list=_list,
        url_list=lambda urls: (json.dumps(list(urls)),),
        url_key=lambda url: (plain_text(url),),
        page_row=tuple,
    )
)

_SITE = """SELECT s.id, s.site, s.admitted, s.pages, s.rest_until, s.delay, s.turn_at, s.taken, s.due_at,
    coalesce(n.n, s.pages), n.n IS NOT NULL FROM sites s LEFT JOIN numbered n ON n.site_id = s.id"""
_SITE_NAMED = f"{_SITE} WHERE s.site = ?"
_SITES_NUMBERED = f"{_SITE} WHERE s.id IN (SELECT value FROM json_each(?)) ORDER BY s.id"
_INSERT_SITE = "INSERT INTO sites (id, site) SELECT max(coalesce(max(id), 0), ?) + 1, ? FROM sites"
_KEEP_SITE = "UPDATE sites SET admitted = ?, pages = ?, turn_at = ?, taken = ?, due_at = ? WHERE id = ?"
_HOLD = f"{SQLITE.insert_page} ON CONFLICT (url) DO NOTHING"

_FREE_NEW = """FROM unvisited u WHERE u.site_id = ?
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = u.page_id AND l.live) ORDER BY u.priority, u.page_id"""
_FREE_DUE = """FROM visited v WHERE v.site_id = ? AND v.next_visit {} ?
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live) ORDER BY v.next_visit"""
_NEW = f"SELECT u.page_id {_FREE_NEW} LIMIT ?"
_DUE = f"SELECT v.page_id {_FREE_DUE.format('<=')}, v.page_id LIMIT ?"
_FIRST_NEW = f"SELECT (SELECT found_at FROM pages WHERE id = u.page_id) {_FREE_NEW} LIMIT 1"
_FIRST_DUE = f"SELECT v.next_visit {_FREE_DUE.format('>')} LIMIT 1"
_SITES = """SELECT id, coalesce(delay, ?), taken FROM sites WHERE due_at <= ?
    ORDER BY due_at, taken, id LIMIT ? OFFSET ?"""
_LAPSED = """SELECT coalesce(v.next_visit, p.found_at), p.site_id FROM leases l
    JOIN pages p ON p.id = l.page_id LEFT JOIN visited v ON v.page_id = l.page_id
    WHERE l.live = 1 AND l.expires_at <= ?"""
_PULL_TURN = """UPDATE sites SET due_at = max(?1, turn_at, rest_until)
    WHERE id = ?2 AND (due_at IS NULL OR due_at > max(?1, turn_at, rest_until))"""
_GRANT = """INSERT INTO leases (page_id, token, expires_at)
    SELECT value, ?2 + key, ?3 FROM json_each(?1) WHERE true
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at, live = 1"""
_NEXT_TURN = """UPDATE sites SET turn_at = ?2, taken = taken + ?3, due_at = max(?4, ?2, rest_until)
    WHERE id = ?1"""
_SAME_TURN = """UPDATE sites SET due_at = max(?1, turn_at, rest_until)
    WHERE id = ?2 AND due_at IS NOT max(?1, turn_at, rest_until)"""


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
        after = max(first_site(self._limits.shard), self._write.counts.get(_LAST_SITE, 0))
        id = self._write.execute(_INSERT_SITE, (after, name)).lastrowid or 0
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
        return [site.id for site in self._take_apart(self._write.rows(_SITES_NUMBERED, (_list(ids),)))]

    def drop(self, site: HeldSite) -> None:
        del self.by_id[site.id], self.by_name[site.site]
        self._write.count_from(site.id, _LAST_SITE, 0)
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

    def __init__(self, write: SqliteWrite, limits: StoreLimits, known: KnownUrls) -> None:
        super().__init__(write, SQLITE, limits, known)
        self._sites = SqliteSites(write, limits)
        self._unvisited: list[Row] = []

    def hold(self, found: FoundUrl, found_on: int | None, now: float) -> bool:
        if found.url in self._known and not found.admit:
            return False
        if not holdable(found):
            self.refuse(refused_for(found, Reason.BAD_URL))
            return False
        site = self._sites.named(found.site) or self._sites.make(found.site)
        if found.admit:
            site.admit()
        if is_full(site.pages, self._limits.max_pages_per_site):
            if self._write.execute("SELECT 1 FROM pages WHERE url = ?", (found.url,)).fetchone() is None:
                self.refuse(refused_for(found, Reason.SITE_FULL))
            return False
        self.held.append(found.url)
        id = page_number(site.id, site.numbered + 1)
        row = (id, site.id, found.url, KIND_CODE[found.kind], HOW_CODE[found.how], found.depth, found.hops)
        if self._write.execute(_HOLD, (*row, found.priority, now, found_on)).rowcount == 0:
            return False
        self._unvisited.append((site.id, found.priority, id))
        site.pages += 1
        site.numbered += 1
        site.changed = True
        site.pull(now)
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

    def finish(self) -> None:
        if self._unvisited:
            self._write.executemany(SQLITE.insert_unvisited, self._unvisited)
            self._write.count("unvisited", len(self._unvisited))
            self._write.count(f"state.{PageState.NEW}", len(self._unvisited))
        self._write_links()
        self._sites.save()
        self._write_refusals()


def lease_pages(
    write: SqliteWrite, limits: StoreLimits, now: float, limit: int, seconds: float, due_by: float
) -> list[Lease]:
    """Lease pages by two indexes, whatever the number of URLs."""
    write.reach("lapse")
    lapse(write, now)

    def sites_from(start: int) -> list[SiteTurn]:
        return [SiteTurn(*row) for row in write.execute(_SITES, (limits.delay, now, limit, start))]

    def peek(site: int, count: int) -> tuple[list[int], list[int]]:
        new = write.execute(_NEW, (site, count)).fetchall()
        due = write.execute(_DUE, (site, due_by, count)).fetchall()
        return [id for (id,) in new], [id for (id,) in due]

    portions = first_portions(sites_from, peek, limits, limit, seconds)
    write.reach("leases")
    leases = grant(write, [id for portion in portions for id in portion.pages], now + seconds, limits.shard)
    write.reach("turns")
    for portion in portions:
        _pass_turn(write, portion, now, due_by)
    return leases


def lapse(write: SqliteWrite, now: float) -> None:
    """End the leases that have expired."""
    lapsed = write.execute(_LAPSED, (now,)).fetchall()
    if lapsed:
        write.executemany(_PULL_TURN, lapsed)
        write.execute("UPDATE leases SET live = 0 WHERE live = 1 AND expires_at <= ?", (now,))


def earliest_due(write: SqliteWrite, site: int, after: float = EVER) -> float | None:
    """When the site's next page without a lease is due, ignoring pages due again until `after`."""
    new = None if after > EVER else write.execute(_FIRST_NEW, (site,)).fetchone()
    due = write.execute(_FIRST_DUE, (site, after)).fetchone()
    return min((row[0] for row in (new, due) if row), default=None)


def grant(write: SqliteWrite, ids: Sequence[int], expires_at: float, shard: int) -> list[Lease]:
    first = write.count_from(first_token(shard), "token", len(ids)) - len(ids) + 1 if ids else 0
    listed = _list(ids)
    write.execute(_GRANT, (listed, first, expires_at))
    rows = write.execute(SQLITE.pages, (listed,))
    return [Lease(page_record(row), first + place, expires_at) for place, row in enumerate(rows)]


def _pass_turn(write: SqliteWrite, portion: Portion, now: float, due_by: float) -> None:
    """Set the site's next turn: when its pages can be fetched politely and one of them is due."""
    earliest = now if portion.more else earliest_due(write, portion.site.id, due_by)
    if portion.pages:
        write.execute(_NEXT_TURN, (portion.site.id, portion.next_turn(now), len(portion.pages), earliest))
    else:
        write.execute(_SAME_TURN, (earliest, portion.site.id))
