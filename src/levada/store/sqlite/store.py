"""The store on SQLite: one file on one machine. Pages are leased under its one writer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from levada.core.protocols import Faults
from levada.core.records import FOREVER, Lease
from levada.store.base import StoreLimits
from levada.store.bodies import Bodies
from levada.store.fair_leasing import SiteTurn, first_portions
from levada.store.faults import NoFaults
from levada.store.rows import page_record
from levada.store.rules import first_token
from levada.store.sql.moving import SqlStore
from levada.store.sql.reading import PageSummaries
from levada.store.sql.writing import EVER
from levada.store.sqlite.connection import check
from levada.store.sqlite.database import SqliteDatabase, SqliteWrite
from levada.store.sqlite.frontier import FENCED, SQLITE, SqliteIntake, SqliteSites, listed

_SUMMARIES_CACHE_BYTES = 8 << 20
_FREE_NEW = """FROM unvisited u WHERE u.site_id = ?
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = u.page_id AND l.live) ORDER BY u.priority, u.page_id"""
_FREE_DUE = """FROM visited v WHERE v.site_id = ? AND v.next_visit {} ?
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live) ORDER BY v.next_visit"""
_NEW = f"SELECT u.page_id {_FREE_NEW} LIMIT ?"
_DUE = f"SELECT v.page_id {_FREE_DUE.format('<=')}, v.page_id LIMIT ?"
_FIRST_NEW = f"SELECT (SELECT found_at FROM pages WHERE id = u.page_id) {_FREE_NEW} LIMIT 1"
_FIRST_DUE = f"SELECT v.next_visit {_FREE_DUE.format('>')} LIMIT 1"
_SITES = """SELECT id, site, delay, taken FROM sites WHERE due_at <= ?
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
_FENCE = f"""INSERT INTO leases (page_id, token, expires_at, live) VALUES (?, ?, 0, {FENCED})
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = 0, live = {FENCED}
    WHERE live != {FENCED}"""
_DROP_VERSIONS = "DELETE FROM versions WHERE page_id = ? AND version <= ?"


class SqliteStore(SqlStore[SqliteWrite]):
    """One file, WAL, synchronous=FULL. Each write is one transaction: all of it, or an error and nothing. Threads
    may share an instance (they take turns); other processes open their own."""

    sql = SQLITE
    _database: SqliteDatabase

    def __init__(
        self,
        path: Path,
        *,
        limits: StoreLimits | None = None,
        faults: Faults | None = None,
        read_only: bool = False,
        bodies: Bodies | None = None,
    ) -> None:
        self.path = path
        limits = limits or StoreLimits()
        super().__init__(SqliteDatabase(path, limits, faults or NoFaults(), read_only=read_only), limits, bodies)

    @classmethod
    def open_reader(cls, path: Path, *, limits: StoreLimits | None = None, bodies: Bodies | None = None) -> SqliteStore:
        """A read-only store, beside a writer or alone."""
        return cls(path, limits=limits, read_only=True, bodies=bodies)

    def check(self) -> None:
        """Read everything once; raise `StoreDamaged` if the database is damaged."""
        with self._database.read() as connection:
            check(connection, self.path)

    def _intake(self, write: SqliteWrite) -> SqliteIntake:
        return SqliteIntake(write, self._limits, self._known)

    def _lock_sites(self, write: SqliteWrite) -> SqliteSites:
        return SqliteSites(write, self._limits)

    def _lease(self, write: SqliteWrite, now: float, limit: int, seconds: float, due_by: float) -> list[Lease]:
        """Lease pages by two indexes, whatever the number of URLs."""
        write.reach("lapse")
        self._lapse(write, now, wait=False)

        def sites_from(start: int) -> list[SiteTurn]:
            rows = write.execute(_SITES, (now, limit, start))
            return [SiteTurn(id, self._limits.delay_of(site, delay), taken) for id, site, delay, taken in rows]

        def peek(site: int, count: int) -> tuple[list[int], list[int]]:
            new = write.execute(_NEW, (site, count)).fetchall()
            due = write.execute(_DUE, (site, due_by, count)).fetchall()
            return [id for (id,) in new], [id for (id,) in due]

        portions = first_portions(sites_from, peek, self._limits, limit, seconds)
        write.reach("leases")
        pages = [(id, portion.site.id) for portion in portions for id in portion.pages]
        leases = self._grant(write, pages, now + seconds)
        write.reach("turns")
        for portion in portions:
            earliest = now if portion.more else _earliest_due(write, portion.site.id, due_by)
            if portion.pages:
                write.execute(_NEXT_TURN, (portion.site.id, portion.next_turn(now), len(portion.pages), earliest))
            else:
                write.execute(_SAME_TURN, (earliest, portion.site.id))
        return leases

    def _grant(self, write: SqliteWrite, pages: Sequence[tuple[int, int]], expires_at: float) -> list[Lease]:
        if not pages:
            return []
        first = write.take("token", first_token(self._limits.shard), len(pages))[0]
        ids = listed(id for id, _ in pages)
        write.execute(_GRANT, (ids, first, expires_at))
        rows = write.execute(SQLITE.pages, (ids,))
        return [Lease(page_record(row), first + place, expires_at) for place, row in enumerate(rows)]

    def _lapse(self, write: SqliteWrite, now: float, *, wait: bool) -> None:
        lapsed = write.execute(_LAPSED, (now,)).fetchall()
        if lapsed:
            write.executemany(_PULL_TURN, lapsed)
            write.execute("UPDATE leases SET live = 0 WHERE live = 1 AND expires_at <= ?", (now,))

    def _earliest_due(self, write: SqliteWrite, sites: Sequence[int], after: float = EVER) -> dict[int, float]:
        found = {site: _earliest_due(write, site, after) for site in sites}
        return {site: at for site, at in found.items() if at is not None}

    def _drop_versions(self, write: SqliteWrite, outdated: Sequence[tuple[int, int]]) -> int:
        return write.executemany(_DROP_VERSIONS, outdated).rowcount

    def _drop_these(self, write: SqliteWrite, versions: Sequence[tuple[int, int]]) -> int:
        return write.executemany(SQLITE.drop_version, versions).rowcount if versions else 0

    def compact(self) -> None:
        self.delete_unused_bodies(FOREVER)
        self._database.compact()

    def _fence_off(self, write: SqliteWrite, ids: Sequence[int]) -> None:
        tokens = write.take("token", first_token(self._limits.shard), len(ids)) if ids else ()
        write.executemany(_FENCE, list(zip(ids, tokens, strict=True)))

    def _forgetting(self) -> AbstractContextManager[None]:
        return self._database.erasing()


def _earliest_due(write: SqliteWrite, site: int, after: float) -> float | None:
    """When the site's next page without a lease is due, ignoring pages due again until `after`."""
    new = None if after > EVER else write.execute(_FIRST_NEW, (site,)).fetchone()
    due = write.execute(_FIRST_DUE, (site, after)).fetchone()
    return min((row[0] for row in (new, due) if row), default=None)


def open_summaries(path: Path, name: str) -> PageSummaries:
    """The page summaries of the shard `name` in this file."""
    limits = StoreLimits(cache_bytes=_SUMMARIES_CACHE_BYTES)
    return PageSummaries(SqliteDatabase(path, limits, NoFaults(), read_only=True), SQLITE, name)
