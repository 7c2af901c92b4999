"""Which URLs are there, and which may be visited now? The `Frontier` port on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from levada.adapters.keeping import DUE_COUNTED, plain_text
from levada.adapters.known_urls import KnownUrls
from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import page_record
from levada.adapters.sqlite.counters import read_counters
from levada.adapters.sqlite.database import Database
from levada.adapters.sqlite.holding import Holding
from levada.adapters.sqlite.leasing import forget_leases, give_back, lease_pages
from levada.adapters.sqlite.rows import FROM_PAGES, PAGE_COLUMNS
from levada.adapters.sqlite.settling import settle_visits
from levada.adapters.sqlite.waits import WAITING_BEYOND, end_waits
from levada.records import FOREVER, Forwarded, Found, Lease, PageRecord, Refusal, Settled, Standing

__all__ = ["SqliteFrontier"]

SITES_COUNTED = 2_000
_BY_URL = f"SELECT {PAGE_COLUMNS} {FROM_PAGES} WHERE p.url = ?"
_LIKE = "SELECT url FROM pages WHERE url >= ? AND url < ? ORDER BY url LIMIT ?"
_LAST = "\U0010ffff"
_DUE = """SELECT count(*) FROM (
    SELECT 1 FROM (SELECT id FROM sites WHERE due_at IS NOT NULL ORDER BY due_at LIMIT ?1) s
    JOIN visited v ON v.site_id = s.id AND v.next_visit <= ?2
    WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live = 1 AND l.expires_at > ?2)
    LIMIT ?3)"""
_LEASED = """SELECT (SELECT count(*) FROM leases WHERE live = 1 AND expires_at > ?),
    (SELECT min(expires_at) FROM leases WHERE live = 1), (SELECT min(due_at) FROM sites WHERE due_at IS NOT NULL)"""
_WORKABLE = """SELECT EXISTS (SELECT 1 FROM sites s WHERE s.rest_until <= ?1 AND (
    EXISTS (SELECT 1 FROM unvisited u WHERE u.site_id = s.id)
    OR EXISTS (SELECT 1 FROM visited v WHERE v.site_id = s.id AND v.next_visit <= ?1)))"""
_WAITING = "SELECT due_at, taken FROM sites WHERE due_at <= ? ORDER BY due_at, taken LIMIT ?"
_BYTES = "SELECT (SELECT page_count FROM pragma_page_count()) * (SELECT page_size FROM pragma_page_size())"


class SqliteFrontier:
    def __init__(self, database: Database, limits: StoreLimits) -> None:
        self._database = database
        self._limits = limits
        self._known = KnownUrls(limits.known_urls)

    def add(self, found: Sequence[Found], refused: Sequence[Refusal], now: float) -> int:
        if not found and not refused:
            return 0
        with self._database.write("add") as write:
            holding = Holding(write, self._limits, self._known)
            write.reach("links")
            new = sum(holding.hold(each, None, now) for each in found)
            for refusal in refused:
                holding.refuse(refusal)
            write.reach("sites")
            holding.finish()
        self._known.update(holding.held)
        return new

    def receive(self, links: Sequence[Forwarded]) -> int:
        if not links:
            return 0
        with self._database.write("receive") as write:
            holding = Holding(write, self._limits, self._known)
            write.reach("links")
            new = sum(holding.hold(link.found, link.found_on, link.at) for link in links)
            write.reach("sites")
            holding.finish()
        self._known.update(holding.held)
        return new

    def waiting(self, now: float, limit: int) -> list[tuple[float, int]]:
        return [(due, taken) for due, taken in self._database.rows(_WAITING, (now, max(0, limit)))]

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        if limit <= 0:
            return []
        with self._database.write("lease") as write:
            return lease_pages(write, self._limits, now, limit, seconds, now if due is None else due)

    def settle(self, visits: Sequence[Settled]) -> list[bool]:
        if not visits:
            return []
        with self._database.write("settle") as write:
            holding = Holding(write, self._limits, self._known)
            current = settle_visits(write, self._limits, holding, visits)
        # Only now: a URL of a transaction that was undone must not count as stored.
        self._known.update(holding.held)
        return current

    def release(self, leases: Sequence[Lease]) -> None:
        if leases:
            with self._database.write("release") as write:
                give_back(write, self._limits, leases)

    def forget_leases(self) -> None:
        with self._database.write("forget") as write:
            forget_leases(write)

    def limit_waits(self, now: float, latest: float) -> int:
        sites = [id for (id,) in self._database.rows(WAITING_BEYOND, (latest, FOREVER))]
        if sites:
            with self._database.write("limit-waits") as write:
                end_waits(write, sites, now, latest)
        return len(sites)

    def page(self, url: str) -> PageRecord | None:
        rows = self._database.rows(_BY_URL, (plain_text(url),))
        return page_record(rows[0]) if rows else None

    def url_of(self, page_id: int) -> str | None:
        rows = self._database.rows("SELECT url FROM pages WHERE id = ?", (page_id,))
        return rows[0][0] if rows else None

    def urls_like(self, start: str, limit: int) -> list[str]:
        start = plain_text(start)
        return [url for (url,) in self._database.rows(_LIKE, (start, start + _LAST, max(0, limit)))]

    def standing(self, now: float) -> Standing:
        """Counts are kept, not counted; `due` is, up to 10,000 in the 2,000 sites that come next."""
        with self._database.read() as connection:
            counts = read_counters(connection)
            (due,) = connection.execute(_DUE, (SITES_COUNTED, now, DUE_COUNTED)).fetchone()
            leased, expiry, turn = connection.execute(_LEASED, (now,)).fetchone()
            (workable,) = connection.execute(_WORKABLE, (now,)).fetchone()
            (size,) = connection.execute(_BYTES).fetchone()
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
            workable=bool(workable),
            states=states,
            refused=_under("refused.", counts),
            bytes=size,
        )


def _under(prefix: str, counts: dict[str, int]) -> dict[str, int]:
    return {name.removeprefix(prefix): n for name, n in counts.items() if n and name.startswith(prefix)}
