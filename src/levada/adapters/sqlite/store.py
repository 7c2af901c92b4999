"""Where does a whole crawl live on one machine? Every port of a store over one database."""

from __future__ import annotations

from pathlib import Path

from levada.adapters.database_store import DatabaseStore, StoreParts
from levada.adapters.faults import NoFaults
from levada.adapters.limits import StoreLimits
from levada.adapters.sqlite.census import SqliteCensus
from levada.adapters.sqlite.database import Database
from levada.adapters.sqlite.documents import SqliteDocuments
from levada.adapters.sqlite.frontier import SqliteFrontier
from levada.adapters.sqlite.moving import SqliteMovers
from levada.adapters.sqlite.notices import SqliteNotices
from levada.adapters.sqlite.opening import check
from levada.adapters.sqlite.outbox import SqliteOutbox
from levada.adapters.sqlite.sites import SqliteSites
from levada.ports import Faults

__all__ = ["SqliteStore"]


class SqliteStore(DatabaseStore):
    """One file, WAL, synchronous=FULL. Each write is one transaction: whole, or an error and nothing.

    Threads may share an instance (they take turns); other processes open their own.
    """

    _database: Database

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
        database = Database(path, limits, faults or NoFaults(), read_only=read_only)
        super().__init__(
            database,
            StoreParts(
                SqliteFrontier(database, limits),
                SqliteSites(database, limits),
                SqliteDocuments(database),
                SqliteCensus(database),
                SqliteNotices(database),
                SqliteOutbox(database),
                SqliteMovers(database, limits),
            ),
        )

    @classmethod
    def open_reader(cls, path: Path, *, limits: StoreLimits | None = None) -> SqliteStore:
        """A store that answers questions and refuses to write, beside a writer or alone."""
        return cls(path, limits=limits, read_only=True)

    def check(self) -> None:
        """Read everything once; `StoreDamaged` if the database is not sound."""
        with self._database.read() as connection:
            check(connection, self._database.path)
