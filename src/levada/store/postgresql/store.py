"""The store on PostgreSQL: one schema that several machines share. Each leases pages while the others do."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from levada.core.protocols import Faults
from levada.core.records import FOREVER, Lease
from levada.store.base import Capability, StoreLimits
from levada.store.bodies import Bodies
from levada.store.fair_leasing import SiteTurn, first_portions
from levada.store.faults import NoFaults
from levada.store.postgresql import schema
from levada.store.postgresql.connection import Address
from levada.store.postgresql.database import PostgresqlDatabase, PostgresqlWrite, patient
from levada.store.postgresql.dialect import POSTGRESQL
from levada.store.postgresql.frontier import PostgresqlIntake
from levada.store.postgresql.site_locks import IN_SLICES, LockedSites
from levada.store.rows import page_record
from levada.store.sql.moving import SqlStore
from levada.store.sql.reading import PageSummaries
from levada.store.sql.writing import EVER

_NEW = """SELECT s.id, n.page_id FROM unnest(%s::bigint[]) s(id) CROSS JOIN LATERAL (
    SELECT u.page_id FROM unvisited u WHERE u.site_id = s.id
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = u.page_id AND l.live)
    ORDER BY u.priority, u.page_id LIMIT %s) n"""
_DUE = """SELECT s.id, n.page_id FROM unnest(%s::bigint[]) s(id) CROSS JOIN LATERAL (
    SELECT v.page_id FROM visited v WHERE v.site_id = s.id AND v.next_visit <= %s
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live)
    ORDER BY v.next_visit, v.page_id LIMIT %s) n"""
_FIRST_NEW = """SELECT s.id, n.found_at FROM unnest(%s::bigint[]) s(id) CROSS JOIN LATERAL (
    SELECT p.found_at FROM (
        SELECT u.page_id FROM unvisited u WHERE u.site_id = s.id
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = u.page_id AND l.live)
        ORDER BY u.priority, u.page_id LIMIT 1) first JOIN pages p ON p.id = first.page_id) n"""
_FIRST_DUE = """SELECT s.id, n.next_visit FROM unnest(%s::bigint[]) s(id) CROSS JOIN LATERAL (
    SELECT v.next_visit FROM visited v WHERE v.site_id = s.id AND v.next_visit > %s
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live)
    ORDER BY v.next_visit LIMIT 1) n"""
_LAPSED = "SELECT DISTINCT site_id FROM leases WHERE live AND NOT fenced AND expires_at <= %s"
_LAPSE = """UPDATE leases l SET live = false FROM pages p LEFT JOIN visited v ON v.page_id = p.id
    WHERE l.live AND NOT l.fenced AND l.expires_at <= %s AND l.site_id = ANY(%s::bigint[]) AND p.id = l.page_id
    RETURNING coalesce(v.next_visit, p.found_at), l.site_id"""
_GRANT = """INSERT INTO leases (page_id, site_id, token, expires_at)
    SELECT id, site_id, nextval('tokens'), %s
    FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY listed(id, site_id, place) ORDER BY place
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at, live = true
    RETURNING page_id, token"""
_DROP_VERSIONS = """DELETE FROM versions v USING unnest(%s::bigint[], %s::bigint[]) old(page_id, version)
    WHERE v.page_id = old.page_id AND v.version <= old.version RETURNING 1"""
_DROP_THESE = """DELETE FROM versions v USING unnest(%s::bigint[], %s::bigint[]) old(page_id, version)
    WHERE v.page_id = old.page_id AND v.version = old.version RETURNING 1"""
_SITES_OF = "SELECT id, site_id FROM pages WHERE id = ANY(%s::bigint[]) ORDER BY id"
# No join in it: Citus inserts nothing then, and reports no error.
_FENCE = """INSERT INTO leases (page_id, site_id, token, expires_at, fenced)
    SELECT id, site_id, nextval('tokens'), 0, true FROM unnest(%s::bigint[], %s::bigint[]) listed(id, site_id)
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = 0, live = true, fenced = true
    WHERE NOT leases.fenced"""


_END_BY = f"""UPDATE leases SET expires_at = %(latest)s WHERE live AND NOT fenced AND expires_at > %(latest)s
    AND site_id IN (SELECT id FROM sites WHERE {IN_SLICES})"""


class PostgresqlStore(SqlStore[PostgresqlWrite]):
    """One schema of one database. Each write is one transaction: all of it, or an error and nothing. Threads may
    share an instance (they take turns). Processes, on any machine, open their own and work concurrently."""

    sql = POSTGRESQL
    capabilities = SqlStore.capabilities | {Capability.SLICES}
    _database: PostgresqlDatabase
    _owned_slices: list[int] | None = None

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "levada",
        limits: StoreLimits | None = None,
        faults: Faults | None = None,
        read_only: bool = False,
        bodies: Bodies | None = None,
    ) -> None:
        self.address = Address(dsn, schema)
        self.place, self.schema = self.address.place, schema
        limits = limits or StoreLimits()
        database = PostgresqlDatabase(self.address, limits, faults or NoFaults(), read_only=read_only)
        super().__init__(database, limits, bodies)

    @classmethod
    def open_reader(cls, dsn: str, *, schema: str = "levada", limits: StoreLimits | None = None) -> PostgresqlStore:
        """A read-only store, beside a writer or alone."""
        return cls(dsn, schema=schema, limits=limits, read_only=True)

    add = patient(SqlStore[PostgresqlWrite].add)
    receive = patient(SqlStore[PostgresqlWrite].receive)
    lease = patient(SqlStore[PostgresqlWrite].lease)
    lease_url = patient(SqlStore[PostgresqlWrite].lease_url)
    commit = patient(SqlStore[PostgresqlWrite].commit)
    release = patient(SqlStore[PostgresqlWrite].release)
    limit_waits = patient(SqlStore[PostgresqlWrite].limit_waits)
    save = patient(SqlStore[PostgresqlWrite].save)
    bring_forward = patient(SqlStore[PostgresqlWrite].bring_forward)
    bury = patient(SqlStore[PostgresqlWrite].bury)
    erase = patient(SqlStore[PostgresqlWrite].erase)
    erase_traces = patient(SqlStore[PostgresqlWrite].erase_traces)
    thin_out = patient(SqlStore[PostgresqlWrite].thin_out)

    def own(self, slices: frozenset[int] | None) -> None:
        self._owned_slices = None if slices is None else sorted(slices)

    @patient
    def end_leases_by(self, slices: frozenset[int], latest: float) -> None:
        with self._database.write("end-leases") as write:
            write.reach("leases")
            write.rows(_END_BY + " RETURNING 1", {"latest": float(latest), "slices": sorted(slices)})

    def check(self) -> None:
        """Read everything once; raise `StoreDamaged` if the schema is damaged."""
        schema.check(self._database.rows, self.place)

    def _intake(self, write: PostgresqlWrite) -> PostgresqlIntake:
        return PostgresqlIntake(write, self._limits, self._known)

    def _lock_sites(self, write: PostgresqlWrite) -> LockedSites:
        return LockedSites(write)

    def _lease(self, write: PostgresqlWrite, now: float, limit: int, seconds: float, due_by: float) -> list[Lease]:
        write.reach("lapse")
        self._lapse(write, now, wait=False)
        sites = LockedSites(write)
        peeking = _Peeking(write, due_by, limit)

        def sites_from(start: int) -> list[SiteTurn]:
            turns = [
                SiteTurn(site.id, self._limits.delay_of(site.site, site.delay), site.taken)
                for site in sites.lock_due(now, limit, start, self._owned_slices)
            ]
            peeking.expect([turn.id for turn in turns])
            return turns

        portions = first_portions(sites_from, peeking.peek, self._limits, limit, seconds)
        write.reach("leases")
        pages = [(id, portion.site.id) for portion in portions for id in portion.pages]
        leases = self._grant(write, pages, now + seconds)
        write.reach("turns")
        earliest = self._earliest_due(write, [portion.site.id for portion in portions if not portion.more], due_by)
        for portion in portions:
            site = sites.by_id[portion.site.id]
            if portion.pages:
                site.pass_turn(portion.next_turn(now), len(portion.pages))
            site.set_turn(now if portion.more else earliest.get(site.id))
        sites.save()
        return leases

    def _grant(self, write: PostgresqlWrite, pages: Sequence[tuple[int, int]], expires_at: float) -> list[Lease]:
        if not pages:
            return []
        ids = [id for id, _ in pages]
        tokens: dict[int, int] = dict(write.rows(_GRANT, (float(expires_at), ids, [site for _, site in pages])))
        return [Lease(page_record(row), tokens[row[0]], expires_at) for row in write.rows(POSTGRESQL.pages, (ids,))]

    def _lapse(self, write: PostgresqlWrite, now: float, *, wait: bool) -> None:
        lapsed = [site for (site,) in write.rows(_LAPSED, (now,))]
        if not lapsed:
            return
        sites = LockedSites(write)
        locked = sites.lock_numbered(lapsed, wait=wait)
        for due, site in write.rows(_LAPSE, (now, locked)):
            if due is not None:
                sites.by_id[site].pull(due)
        sites.save()

    def _earliest_due(self, write: PostgresqlWrite, sites: Sequence[int], after: float = EVER) -> dict[int, float]:
        if not sites:
            return {}
        earliest: dict[int, float] = dict(write.rows(_FIRST_DUE, (list(sites), after)))
        if after == EVER:
            for site, found_at in write.rows(_FIRST_NEW, (list(sites),)):
                earliest[site] = min(found_at, earliest.get(site, found_at))
        return earliest

    def _drop_versions(self, write: PostgresqlWrite, outdated: Sequence[tuple[int, int]]) -> int:
        pages, versions = map(list, zip(*outdated, strict=True))
        return len(write.rows(_DROP_VERSIONS, (pages, versions)))

    def _drop_these(self, write: PostgresqlWrite, versions: Sequence[tuple[int, int]]) -> int:
        if not versions:
            return 0
        pages, numbers = map(list, zip(*versions, strict=True))
        return len(write.rows(_DROP_THESE, (pages, numbers)))

    def compact(self) -> None:
        self.delete_unused_bodies(FOREVER)
        self._database.compact()

    def _fence_off(self, write: PostgresqlWrite, ids: Sequence[int]) -> None:
        if pages := write.rows(_SITES_OF, (list(ids),)) if ids else []:
            write.execute(_FENCE, [list(column) for column in zip(*pages, strict=True)])


class _Peeking:
    """Looks into several sites at once: as many as may be needed to fill the batch."""

    def __init__(self, write: PostgresqlWrite, due_by: float, limit: int) -> None:
        self._write = write
        self._due_by = due_by
        self._limit = limit
        self._ahead: list[int] = []
        self._seen: dict[tuple[int, int], tuple[list[int], list[int]]] = {}

    def expect(self, sites: list[int]) -> None:
        """Announce the sites that `peek` will ask for, in about this order."""
        self._ahead = sites

    def peek(self, site: int, count: int) -> tuple[list[int], list[int]]:
        if (site, count) not in self._seen:
            self._look(site, count)
        return self._seen[site, count]

    def _look(self, site: int, count: int) -> None:
        place = self._ahead.index(site)
        sites = self._ahead[place : place + ceil(self._limit / count)]
        self._seen |= {(each, count): ([], []) for each in sites}
        for id, page in self._write.rows(_NEW, (sites, count)):
            self._seen[id, count][0].append(page)
        for id, page in self._write.rows(_DUE, (sites, self._due_by, count)):
            self._seen[id, count][1].append(page)


def open_summaries(dsn: str, schema: str, name: str) -> PageSummaries:
    """The page summaries of the shard `name` in this schema."""
    return PageSummaries(
        PostgresqlDatabase(Address(dsn, schema), StoreLimits(), NoFaults(), read_only=True), POSTGRESQL, name
    )
