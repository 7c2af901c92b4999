"""The store on PostgreSQL: one schema that several machines share."""

from __future__ import annotations

from collections.abc import Sequence

from levada.core.protocols import Faults
from levada.core.records import Lease
from levada.store.base import StoreLimits
from levada.store.faults import NoFaults
from levada.store.postgresql import frontier, schema
from levada.store.postgresql.connection import Address
from levada.store.postgresql.database import PostgresqlDatabase, PostgresqlWrite, patient
from levada.store.postgresql.dialect import POSTGRESQL
from levada.store.postgresql.site_locks import LockedSites
from levada.store.sql.moving import SqlStore
from levada.store.sql.reading import PageSummaries
from levada.store.sql.writing import EVER, Intake

_DROP_VERSIONS = """DELETE FROM versions v USING unnest(%s::bigint[], %s::bigint[]) old(page_id, version)
    WHERE v.page_id = old.page_id AND v.version <= old.version RETURNING 1"""
_FENCE = """INSERT INTO leases (page_id, site_id, token, expires_at, fenced)
    SELECT p.id, p.site_id, nextval('tokens'), 0, true FROM unnest(%s::bigint[]) listed(id)
    JOIN pages p ON p.id = listed.id
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = 0, live = true, fenced = true
    WHERE NOT leases.fenced"""


class PostgresqlStore(SqlStore[PostgresqlWrite]):
    """One schema of one database. Each write is one transaction: all of it, or an error and nothing. Threads may
    share an instance (they take turns). Processes, on any machine, open their own and work concurrently."""

    sql = POSTGRESQL
    _database: PostgresqlDatabase

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "levada",
        limits: StoreLimits | None = None,
        faults: Faults | None = None,
        read_only: bool = False,
    ) -> None:
        self.address = Address(dsn, schema)
        self.place, self.schema = self.address.place, schema
        limits = limits or StoreLimits()
        super().__init__(PostgresqlDatabase(self.address, limits, faults or NoFaults(), read_only=read_only), limits)

    @classmethod
    def open_reader(cls, dsn: str, *, schema: str = "levada", limits: StoreLimits | None = None) -> PostgresqlStore:
        """A read-only store, beside a writer or alone."""
        return cls(dsn, schema=schema, limits=limits, read_only=True)

    @property
    def shards(self) -> tuple[PostgresqlStore]:
        return (self,)

    logs = shards

    add = patient(SqlStore[PostgresqlWrite].add)
    receive = patient(SqlStore[PostgresqlWrite].receive)
    lease = patient(SqlStore[PostgresqlWrite].lease)
    lease_url = patient(SqlStore[PostgresqlWrite].lease_url)
    commit = patient(SqlStore[PostgresqlWrite].commit)
    release = patient(SqlStore[PostgresqlWrite].release)
    limit_waits = patient(SqlStore[PostgresqlWrite].limit_waits)
    save = patient(SqlStore[PostgresqlWrite].save)
    bring_forward = patient(SqlStore[PostgresqlWrite].bring_forward)

    def check(self) -> None:
        """Read everything once; raise `StoreDamaged` if the schema is damaged."""
        schema.check(self._database.rows, self.place)

    def _intake(self, write: PostgresqlWrite) -> Intake[PostgresqlWrite]:
        return frontier.PostgresqlIntake(write, self._limits, self._known)

    def _lock_sites(self, write: PostgresqlWrite) -> LockedSites:
        return LockedSites(write)

    def _lease(self, write: PostgresqlWrite, now: float, limit: int, seconds: float, due_by: float) -> list[Lease]:
        return frontier.lease_pages(write, self._limits, now, limit, seconds, due_by)

    def _grant(self, write: PostgresqlWrite, pages: Sequence[tuple[int, int]], expires_at: float) -> list[Lease]:
        return frontier.grant(write, pages, expires_at)

    def _lapse_all(self, write: PostgresqlWrite) -> None:
        frontier.lapse(write, LockedSites(write), float("inf"), wait=True)

    def _earliest_due(self, write: PostgresqlWrite, sites: Sequence[int], after: float = EVER) -> dict[int, float]:
        return frontier.earliest_due(write, sites, after)

    def _drop_versions(self, write: PostgresqlWrite, outdated: Sequence[tuple[int, int]]) -> int:
        pages, versions = map(list, zip(*outdated, strict=True))
        return len(write.rows(_DROP_VERSIONS, (pages, versions)))

    def _fence_off(self, write: PostgresqlWrite, ids: Sequence[int]) -> None:
        if ids:
            write.execute(_FENCE, (list(ids),))


def open_summaries(dsn: str, schema: str, name: str) -> PageSummaries:
    """The page summaries of the shard `name` in this schema."""
    return PageSummaries(
        PostgresqlDatabase(Address(dsn, schema), StoreLimits(), NoFaults(), read_only=True), POSTGRESQL, name
    )
