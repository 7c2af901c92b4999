"""The store on PostgreSQL: one schema that several machines share. Each leases pages while the others do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import ceil
from operator import and_
from typing import Any, ParamSpec, TypeVar

from levada.core.errors import StoreAway
from levada.core.protocols import Faults
from levada.core.records import FOREVER, Lease, VisitResult
from levada.store.base import Capability, Epoch, StoreLimits
from levada.store.bodies import Bodies
from levada.store.fair_leasing import Portion, SiteTurn, first_portions
from levada.store.faults import NoFaults
from levada.store.postgresql import schema
from levada.store.postgresql.connection import Address
from levada.store.postgresql.database import PostgresqlDatabase, PostgresqlWrite
from levada.store.postgresql.dialect import POSTGRESQL
from levada.store.postgresql.epochs import EPOCHS
from levada.store.postgresql.frontier import PostgresqlIntake
from levada.store.postgresql.site_locks import IN_SLICES, LockedSites
from levada.store.rows import Row, page_record
from levada.store.sql.base import KnownUrls
from levada.store.sql.moving import SqlStore
from levada.store.sql.reading import PageSummaries
from levada.store.sql.stored import Stored
from levada.store.sql.writing import EVER, Contents

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
# Of the pages chosen, those of sites that are locked, and that nobody visited or leased since they were chosen.
_GRANT_FREE = """INSERT INTO leases (page_id, site_id, token, expires_at)
    SELECT id, site_id, nextval('tokens'), expires_at FROM (
        SELECT listed.id, listed.site_id, %s::float8 expires_at
        FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY listed(id, site_id, place)
        JOIN pages p ON p.id = listed.id
        WHERE listed.site_id = ANY(current_setting('levada.locked')::bigint[])
        AND coalesce((SELECT v.next_visit <= %s FROM visited v WHERE v.page_id = p.id),
            (SELECT true FROM unvisited u
            WHERE u.site_id = p.site_id AND u.priority = p.priority AND u.page_id = p.id))
        ORDER BY place) free
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at, live = true
    WHERE NOT leases.live
    RETURNING page_id, token"""
_VISITS = "SELECT page_id, visits FROM visited WHERE page_id = ANY(%s::bigint[])"
_DUE_SITES = f"""SELECT id, site, delay, taken FROM sites
    WHERE due_at <= %(now)s AND {IN_SLICES} AND id <> ALL(%(tried)s::bigint[])
    ORDER BY due_at, taken, id LIMIT %(limit)s"""
_DROP_VERSIONS = """DELETE FROM versions v USING unnest(%s::bigint[], %s::bigint[]) old(page_id, version)
    WHERE v.page_id = old.page_id AND v.version <= old.version"""
_DROP_THESE = """DELETE FROM versions v USING unnest(%s::bigint[], %s::bigint[]) old(page_id, version)
    WHERE v.page_id = old.page_id AND v.version = old.version"""
_SITES_OF = "SELECT id, site_id FROM pages WHERE id = ANY(%s::bigint[]) ORDER BY id"
# No join in it: Citus inserts nothing then, and reports no error.
_FENCE = """INSERT INTO leases (page_id, site_id, token, expires_at, fenced)
    SELECT id, site_id, nextval('tokens'), 0, true FROM unnest(%s::bigint[], %s::bigint[]) listed(id, site_id)
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = 0, live = true, fenced = true
    WHERE NOT leases.fenced"""


_END_BY = f"""UPDATE leases SET expires_at = %(latest)s WHERE live AND NOT fenced AND expires_at > %(latest)s
    AND site_id IN (SELECT id FROM sites WHERE {IN_SLICES})"""


_SITES_AT_FIRST, _MORE_SITES = 8, 4  # looked into together; as many times more with each further look
P = ParamSpec("P")
T = TypeVar("T")


def persistent(operation: Callable[P, T]) -> Callable[P, T]:
    """Repeat an operation that is one transaction, see `PostgresqlDatabase.persist`."""

    @wraps(operation)
    def persisting(*args: P.args, **kwargs: P.kwargs) -> T:
        store = args[0]
        assert isinstance(store, PostgresqlStore)
        return store._database.persist(lambda: operation(*args, **kwargs))

    return persisting


class PostgresqlStore(SqlStore[PostgresqlWrite]):
    """One schema of one database. Each write is one transaction: all of it, or an error and nothing. Threads may
    share an instance (they take turns). Processes, on any machine, open their own and work concurrently."""

    sql = POSTGRESQL
    capabilities = SqlStore.capabilities | {Capability.EPOCHS, Capability.SLICES}
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
        self._known_of = ""
        database = PostgresqlDatabase(self.address, limits, faults or NoFaults(), read_only=read_only)
        super().__init__(database, limits, bodies)

    @classmethod
    def open_reader(cls, dsn: str, *, schema: str = "levada", limits: StoreLimits | None = None) -> PostgresqlStore:
        """A read-only store, beside a writer or alone."""
        return cls(dsn, schema=schema, limits=limits, read_only=True)

    add = persistent(SqlStore[PostgresqlWrite].add)
    receive = persistent(SqlStore[PostgresqlWrite].receive)
    delivered = persistent(SqlStore[PostgresqlWrite].delivered)
    lease = persistent(SqlStore[PostgresqlWrite].lease)
    lease_url = persistent(SqlStore[PostgresqlWrite].lease_url)
    release = persistent(SqlStore[PostgresqlWrite].release)
    forget_leases = persistent(SqlStore[PostgresqlWrite].forget_leases)
    limit_waits = persistent(SqlStore[PostgresqlWrite].limit_waits)
    save = persistent(SqlStore[PostgresqlWrite].save)
    bring_forward = persistent(SqlStore[PostgresqlWrite].bring_forward)
    fence = persistent(SqlStore[PostgresqlWrite].fence)
    import_pages = persistent(SqlStore[PostgresqlWrite].import_pages)
    let_go = persistent(SqlStore[PostgresqlWrite].let_go)
    unfence = persistent(SqlStore[PostgresqlWrite].unfence)
    bury = persistent(SqlStore[PostgresqlWrite].bury)
    erase = persistent(SqlStore[PostgresqlWrite].erase)
    erase_traces = persistent(SqlStore[PostgresqlWrite].erase_traces)
    thin_out = persistent(SqlStore[PostgresqlWrite].thin_out)

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        """If the server goes away in the middle of the commit, the next try finds out what became of it.

        A visit ends its lease, so the leases of a batch that was written are gone. The next try takes the same locks,
        and therefore comes after a transaction that is still under way.
        """
        in_doubt: Sequence[bool] | None = None
        epoch = self._database.epoch

        def settle() -> list[bool]:
            nonlocal in_doubt
            self._settled = ()
            try:
                current = super(PostgresqlStore, self).commit(visits)
            except StoreAway as error:
                if error.in_doubt:
                    in_doubt = self._settled
                raise
            if in_doubt is None or any(map(and_, current, in_doubt)):
                return current
            # In another epoch, the leases may be lost themselves.
            if self._database.epoch != epoch and not self._are_counted(visits, in_doubt):
                return current
            return list(in_doubt)

        return self._database.persist(settle)

    def _are_counted(self, visits: Sequence[VisitResult], which: Sequence[bool]) -> bool:
        """Whether these pages have been visited once more than when they were leased."""
        expected = {
            result.lease.page.id: result.lease.page.visits + 1
            for result, is_one in zip(visits, which, strict=True)
            if is_one
        }
        return expected == dict(self._rows(_VISITS, (list(expected),)))

    def epochs(self) -> list[Epoch]:
        return [Epoch(*row) for row in self._database.rows(EPOCHS)]

    def own(self, slices: frozenset[int] | None) -> None:
        self._owned_slices = None if slices is None else sorted(slices)

    @persistent
    def end_leases_by(self, slices: frozenset[int], latest: float) -> None:
        with self._database.write("end-leases") as write:
            write.reach("leases")
            write.rows(_END_BY + " RETURNING 1", {"latest": float(latest), "slices": sorted(slices)})

    def check(self) -> None:
        """Read everything once; raise `StoreDamaged` if the schema is damaged."""
        with self._database.unhurried():
            schema.check(self._database.rows, self.place)

    def _intake(self, write: PostgresqlWrite) -> PostgresqlIntake:
        if self._known_of != self._database.epoch:  # what was stored may be lost
            self._known = KnownUrls(self._limits.known_urls)
            self._known_of = self._database.epoch
        return PostgresqlIntake(write, self._limits, self._known)

    def _lock_sites(self, write: PostgresqlWrite) -> LockedSites:
        return LockedSites(write)

    def _lease(self, write: PostgresqlWrite, now: float, limit: int, seconds: float, due_by: float) -> list[Lease]:
        """Choose without a lock, then lock the chosen sites and lease what is still free: two round trips to choose,
        and one under the locks before the commit."""
        write.reach("lapse")
        lapsed, due = write.ask(_LAPSED, (now,)), write.ask(_DUE_SITES, self._due(now, [], limit))
        if ended := [site for (site,) in lapsed()]:
            self._lapse_those(write, now, ended, wait=False)
            due = write.ask(_DUE_SITES, self._due(now, [], limit))
        tried: list[int] = []
        while turns := due():
            peeking = _Peeking(write, due_by, limit)
            portions = first_portions(
                self._turns(write, turns, peeking, now, limit), peeking.peek, self._limits, limit, seconds
            )
            leases = self._lease_portions(write, portions, now, seconds, due_by)
            if leases or not any(portion.pages for portion in portions):
                return leases
            # Others were faster everywhere: the sites behind these.
            tried += [portion.site.id for portion in portions]
            due = write.ask(_DUE_SITES, self._due(now, tried, limit))
        write.reach("leases")
        write.reach("turns")
        return []

    def _due(self, now: float, tried: list[int], limit: int) -> dict[str, Any]:
        return {"now": now, "tried": tried, "limit": limit, "slices": self._owned_slices}

    def _turns(
        self, write: PostgresqlWrite, first: Sequence[Row], peeking: _Peeking, now: float, limit: int
    ) -> Callable[[int], list[SiteTurn]]:
        passed: list[int] = []

        def sites_from(start: int) -> list[SiteTurn]:
            rows = write.rows(_DUE_SITES, self._due(now, passed, limit)) if start else first
            turns = [SiteTurn(id, self._limits.delay_of(site, delay), taken) for id, site, delay, taken in rows]
            passed.extend(turn.id for turn in turns)
            peeking.expect([turn.id for turn in turns])
            return turns

        return sites_from

    def _lease_portions(
        self, write: PostgresqlWrite, portions: Sequence[Portion], now: float, seconds: float, due_by: float
    ) -> list[Lease]:
        write.reach("leases")
        chosen = [(page, portion.site.id) for portion in portions for page in portion.pages]
        pages, of_sites = [page for page, _ in chosen], [site for _, site in chosen]
        sites = LockedSites(write)
        locked = sites.ask_due([portion.site.id for portion in portions], now)
        granted = write.ask(_GRANT_FREE, (now + seconds, pages, of_sites, due_by)) if pages else list
        listed = write.ask(POSTGRESQL.pages, (pages,)) if pages else list
        exhausted = [portion.site.id for portion in portions if not portion.more]
        # All that is left is looked at, for under no lock others may have added pages since these were chosen.
        earliest = self._ask_earliest(write, exhausted, EVER)
        locked()
        tokens: dict[int, int] = dict(granted())
        leases = [Lease(page_record(row), tokens[row[0]], now + seconds) for row in listed() if row[0] in tokens]
        first = earliest()
        write.reach("turns")
        for portion in portions:
            if (site := sites.by_id.get(portion.site.id)) is None:
                continue
            taken = sum(page in tokens for page in portion.pages)
            if taken:
                site.pass_turn(now + taken * portion.site.delay, taken)
            is_left = portion.more or taken < len(portion.pages)
            site.set_turn(now if is_left else first.get(site.id))
        sites.save()
        return leases

    def _grant(self, write: PostgresqlWrite, pages: Sequence[tuple[int, int]], expires_at: float) -> list[Lease]:
        if not pages:
            return []
        ids = [id for id, _ in pages]
        granted = write.ask(_GRANT, (float(expires_at), ids, [site for _, site in pages]))
        listed = write.ask(POSTGRESQL.pages, (ids,))
        tokens: dict[int, int] = dict(granted())
        return [Lease(page_record(row), tokens[row[0]], expires_at) for row in listed()]

    def _lapse(self, write: PostgresqlWrite, now: float, *, wait: bool) -> None:
        if lapsed := [site for (site,) in write.rows(_LAPSED, (now,))]:
            self._lapse_those(write, now, lapsed, wait=wait)

    def _lapse_those(self, write: PostgresqlWrite, now: float, lapsed: Sequence[int], *, wait: bool) -> None:
        sites = LockedSites(write)
        locked = sites.lock_numbered(lapsed, wait=wait)
        for due, site in write.rows(_LAPSE, (now, locked)):
            if due is not None:
                sites.by_id[site].pull(due)
        sites.save()

    def _earliest_due(self, write: PostgresqlWrite, sites: Sequence[int], after: float = EVER) -> dict[int, float]:
        return self._ask_earliest(write, sites, after)()

    def _ask_earliest(
        self, write: PostgresqlWrite, sites: Sequence[int], after: float
    ) -> Callable[[], dict[int, float]]:
        if not sites:
            return dict
        due = write.ask(_FIRST_DUE, (list(sites), after))
        new = write.ask(_FIRST_NEW, (list(sites),)) if after == EVER else list

        def earliest() -> dict[int, float]:
            found: dict[int, float] = dict(due())
            for site, found_at in new():
                found[site] = min(found_at, found.get(site, found_at))
            return found

        return earliest

    def _drop_outdated(self, write: PostgresqlWrite, contents: Contents, stored: Stored, at: float) -> None:
        """The server counts what it deletes, for the counters to be written: no answer is waited for."""
        if contents.outdated:
            self._note_unused(write, self.sql.unused_up_to, contents.outdated, at)
            write.drop_versions(_DROP_VERSIONS, contents.outdated)
        if contents.dated and (going := self._outdated_by_time(contents.dated, stored)):
            self._note_unused(write, self.sql.unused_of_version, going, at)
            write.drop_versions(_DROP_THESE, going)

    def _drop_these(self, write: PostgresqlWrite, versions: Sequence[tuple[int, int]]) -> int:
        if not versions:
            return 0
        pages, numbers = map(list, zip(*versions, strict=True))
        return len(write.rows(f"{_DROP_THESE} RETURNING 1", (pages, numbers)))

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
        self._at_once = _SITES_AT_FIRST
        self._seen: dict[int, tuple[int, list[int], list[int]]] = {}

    def expect(self, sites: list[int]) -> None:
        """Announce the sites that `peek` will ask for, in about this order."""
        self._ahead = sites

    def peek(self, site: int, count: int) -> tuple[list[int], list[int]]:
        if site not in self._seen or self._seen[site][0] < count:
            self._look(site, count)
        _, new, due = self._seen[site]
        return new[:count], due[:count]

    def _look(self, site: int, count: int) -> None:
        place = self._ahead.index(site)
        sites = self._ahead[place : place + max(ceil(self._limit / count), self._at_once)]
        self._at_once *= _MORE_SITES
        self._seen |= {each: (count, [], []) for each in sites}
        new, due = self._write.ask(_NEW, (sites, count)), self._write.ask(_DUE, (sites, self._due_by, count))
        for id, page in new():
            self._seen[id][1].append(page)
        for id, page in due():
            self._seen[id][2].append(page)


def open_summaries(dsn: str, schema: str, name: str) -> PageSummaries:
    """The page summaries of the shard `name` in this schema."""
    return PageSummaries(
        PostgresqlDatabase(Address(dsn, schema), StoreLimits(), NoFaults(), read_only=True), POSTGRESQL, name
    )
