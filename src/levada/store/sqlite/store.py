"""The store on SQLite: one file on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from levada.core.protocols import Faults
from levada.core.records import Lease
from levada.store.base import StoreLimits
from levada.store.faults import NoFaults
from levada.store.rules import first_token
from levada.store.sql.moving import SqlStore
from levada.store.sql.reading import PageSummaries
from levada.store.sql.writing import EVER, Intake
from levada.store.sqlite import frontier
from levada.store.sqlite.connection import check
from levada.store.sqlite.database import SqliteDatabase, SqliteWrite

_SUMMARIES_CACHE_BYTES = 8 << 20
_FENCE = f"""INSERT INTO leases (page_id, token, expires_at, live) VALUES (?, ?, 0, {frontier.FENCED})
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = 0, live = {frontier.FENCED}
    WHERE live != {frontier.FENCED}"""
_DROP_VERSIONS = "DELETE FROM versions WHERE page_id = ? AND version <= ?"


class SqliteStore(SqlStore[SqliteWrite]):
    """One file, WAL, synchronous=FULL. Each write is one transaction: all of it, or an error and nothing. Threads
    may share an instance (they take turns); other processes open their own."""

    sql = frontier.SQLITE
    _database: SqliteDatabase

    def __init__(
        self,
        path: Path,
        *,
        limits: StoreLimits | None = None,
        faults: Faults | None = None,
        read_only: bool = False,
    ) -> None:
        self.path = path
        limits = limits or StoreLimits()
        super().__init__(SqliteDatabase(path, limits, faults or NoFaults(), read_only=read_only), limits)

    @classmethod
    def open_reader(cls, path: Path, *, limits: StoreLimits | None = None) -> SqliteStore:
        """A read-only store, beside a writer or alone."""
        return cls(path, limits=limits, read_only=True)

    @property
    def shards(self) -> tuple[SqliteStore]:
        return (self,)

    logs = shards

    def check(self) -> None:
        """Read everything once; raise `StoreDamaged` if the database is damaged."""
        with self._database.read() as connection:
            check(connection, self.path)

    def _intake(self, write: SqliteWrite) -> Intake[SqliteWrite]:
        return frontier.SqliteIntake(write, self._limits, self._known)

    def _lock_sites(self, write: SqliteWrite) -> frontier.SqliteSites:
        return frontier.SqliteSites(write, self._limits)

    def _lease(self, write: SqliteWrite, now: float, limit: int, seconds: float, due_by: float) -> list[Lease]:
        return frontier.lease_pages(write, self._limits, now, limit, seconds, due_by)

    def _grant(self, write: SqliteWrite, pages: Sequence[tuple[int, int]], expires_at: float) -> list[Lease]:
        return frontier.grant(write, [id for id, _ in pages], expires_at, self._limits.shard)

    def _lapse_all(self, write: SqliteWrite) -> None:
        frontier.lapse(write, float("inf"))

    def _earliest_due(self, write: SqliteWrite, sites: Sequence[int], after: float = EVER) -> dict[int, float]:
        found = {site: frontier.earliest_due(write, site, after) for site in sites}
        return {site: at for site, at in found.items() if at is not None}

    def _drop_versions(self, write: SqliteWrite, outdated: Sequence[tuple[int, int]]) -> int:
        return write.executemany(_DROP_VERSIONS, outdated).rowcount

    def _fence_off(self, write: SqliteWrite, ids: Sequence[int]) -> None:
        base = first_token(self._limits.shard)
        write.executemany(_FENCE, [(id, write.count_from(base, "token", 1)) for id in ids])

    def _forgetting(self) -> AbstractContextManager[None]:
        return self._database.unchecked()


def open_summaries(path: Path, name: str) -> PageSummaries:
    """The page summaries of the shard `name` in this file."""
    limits = StoreLimits(cache_bytes=_SUMMARIES_CACHE_BYTES)
    return PageSummaries(SqliteDatabase(path, limits, NoFaults(), read_only=True), frontier.SQLITE, name)
