"""Which URLs are there, and which may be visited now? The `Frontier` port on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from levada.adapters.keeping import DUE_COUNTED
from levada.adapters.known_urls import KnownUrls
from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import page_record
from levada.adapters.postgresql.database import Database
from levada.adapters.postgresql.holding import Holding
from levada.adapters.postgresql.leasing import forget_leases, give_back, lease_pages
from levada.adapters.postgresql.page_columns import BY_URL, FROM_PAGES, PAGE_COLUMNS, url_rest
from levada.adapters.postgresql.patience import patient
from levada.adapters.postgresql.schema import URL_INDEXED
from levada.adapters.postgresql.settling import settle_visits
from levada.adapters.postgresql.waits import WAITING_BEYOND, end_waits
from levada.records import FOREVER, Forwarded, Found, Lease, PageRecord, Refusal, Settled, Standing

__all__ = ["PostgresqlFrontier"]

SITES_COUNTED = 2_000
_BY_URL = f"SELECT {PAGE_COLUMNS} {FROM_PAGES} WHERE {BY_URL}"
_URLS, _BEGINNING = "url FROM pages", f"left(url, {URL_INDEXED})"
_LIKE = f"""SELECT {_URLS} WHERE {_BEGINNING} >= left(%s, {URL_INDEXED}) AND {_BEGINNING} < %s
    AND url >= %s AND url < %s ORDER BY {_BEGINNING}, url LIMIT %s"""
_LAST = "\U0010ffff"
_STANDING = """SELECT
    (SELECT count(*) FROM (
        SELECT 1 FROM (SELECT id FROM sites WHERE due_at IS NOT NULL ORDER BY due_at, taken, id LIMIT %(sites)s) s
        JOIN visited v ON v.site_id = s.id AND v.next_visit <= %(now)s
        WHERE NOT EXISTS (
            SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live AND (l.fenced OR l.expires_at > %(now)s))
        LIMIT %(due)s) due),
    (SELECT count(*) FROM leases WHERE live AND NOT fenced AND expires_at > %(now)s),
    (SELECT min(expires_at) FROM leases WHERE live AND NOT fenced),
    (SELECT min(due_at) FROM sites WHERE due_at IS NOT NULL),
    EXISTS (SELECT 1 FROM sites s CROSS JOIN LATERAL (
        SELECT 1 FROM unvisited u WHERE u.site_id = s.id LIMIT 1) new WHERE s.rest_until <= %(now)s)
    OR EXISTS (SELECT 1 FROM sites s CROSS JOIN LATERAL (
        SELECT 1 FROM visited v WHERE v.site_id = s.id AND v.next_visit <= %(now)s LIMIT 1) due
        WHERE s.rest_until <= %(now)s),
    (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = current_schema() AND c.relkind = 'r')"""
_WAITING = "SELECT due_at, taken FROM sites WHERE due_at <= %s ORDER BY due_at, taken, id LIMIT %s"
COUNTERS = "SELECT name, n FROM counters"


class PostgresqlFrontier:
    def __init__(self, database: Database, limits: StoreLimits) -> None:
        self._database = database
        self._limits = limits
        self._known = KnownUrls(limits.known_urls)

    @patient
    def add(self, found: Sequence[Found], refused: Sequence[Refusal], now: float) -> int:
        if not found and not refused:
            return 0
        with self._database.write("add") as write:
            holding = Holding(write, self._limits, self._known)
            holding.prepare(found, refused)
            with write.pipeline():
                write.reach("links")
                new = sum(holding.hold(each, None, now) for each in found)
                for refusal in refused:
                    holding.refuse(refusal)
                write.reach("sites")
                holding.finish()
        self._known.update(holding.held)
        return new

    @patient
    def receive(self, links: Sequence[Forwarded]) -> int:
        if not links:
            return 0
        with self._database.write("receive") as write:
            holding = Holding(write, self._limits, self._known)
            holding.prepare([link.found for link in links], ())
            with write.pipeline():
                write.reach("links")
                new = sum(holding.hold(link.found, link.found_on, link.at) for link in links)
                write.reach("sites")
                holding.finish()
        self._known.update(holding.held)
        return new

    def waiting(self, now: float, limit: int) -> list[tuple[float, int]]:
        return [(due, taken) for due, taken in self._database.rows(_WAITING, (now, max(0, limit)))]

    @patient
    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        if limit <= 0:
            return []
        with self._database.write("lease") as write:
            return lease_pages(write, self._limits, now, limit, seconds, now if due is None else due)

    @patient
    def settle(self, visits: Sequence[Settled]) -> list[bool]:
        if not visits:
            return []
        with self._database.write("settle") as write:
            holding = Holding(write, self._limits, self._known)
            current = settle_visits(write, self._limits, holding, visits)
        # Only now: a URL of a transaction that was undone must not count as stored.
        self._known.update(holding.held)
        return current

    @patient
    def release(self, leases: Sequence[Lease]) -> None:
        if not leases:
            return
        with self._database.write("release") as write:
            give_back(write, self._limits, leases)

    def forget_leases(self) -> None:
        with self._database.write("forget") as write:
            forget_leases(write)

    @patient
    def limit_waits(self, now: float, latest: float) -> int:
        sites = [id for (id,) in self._database.rows(WAITING_BEYOND, {"latest": latest, "forever": FOREVER})]
        if sites:
            with self._database.write("limit-waits") as write:
                end_waits(write, sites, now, latest)
        return len(sites)

    def page(self, url: str) -> PageRecord | None:
        rows = self._database.rows(_BY_URL, (url, url_rest(url)))
        return page_record(rows[0]) if rows else None

    def url_of(self, page_id: int) -> str | None:
        rows = self._database.rows("SELECT url FROM pages WHERE id = %s", (page_id,))
        return rows[0][0] if rows else None

    def urls_like(self, start: str, limit: int) -> list[str]:
        bounds = (start, start + _LAST)
        return [url for (url,) in self._database.rows(_LIKE, (*bounds, *bounds, max(0, limit)))]

    def standing(self, now: float) -> Standing:
        """Counts are kept, not counted; `due` is, up to 10,000 in the 2,000 sites that come next."""
        counts: dict[str, int] = dict(self._database.rows(COUNTERS))
        asked = {"now": now, "sites": SITES_COUNTED, "due": DUE_COUNTED}
        due, leased, expiry, turn, workable, size = self._database.rows(_STANDING, asked)[0]
        states = _under("state.", counts)
        return Standing(
            sites=counts.get("sites", 0),
            known=sum(states.values()),
            unvisited=counts.get("unvisited", 0),
            due=due,
            leased=leased,
            stored=counts.get("stored", 0),
            versions=counts.get("versions", 0),
            next_due=min((at for at in (expiry, turn) if at is not None), default=None),
            workable=workable,
            states=states,
            refused=_under("refused.", counts),
            bytes=size or 0,
        )


def _under(prefix: str, counts: dict[str, int]) -> dict[str, int]:
    return {name.removeprefix(prefix): n for name, n in counts.items() if n and name.startswith(prefix)}
