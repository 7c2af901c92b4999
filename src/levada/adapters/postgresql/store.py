"""Where does a whole crawl live that several machines share? Every port of a store over one PostgreSQL schema."""

from __future__ import annotations

from levada.adapters.database_store import DatabaseStore, StoreParts
from levada.adapters.faults import NoFaults
from levada.adapters.limits import StoreLimits
from levada.adapters.postgresql.census import PostgresqlCensus
from levada.adapters.postgresql.connecting import Address
from levada.adapters.postgresql.database import Database
from levada.adapters.postgresql.documents import PostgresqlDocuments
from levada.adapters.postgresql.frontier import PostgresqlFrontier
from levada.adapters.postgresql.laws import check
from levada.adapters.postgresql.moving import PostgresqlMovers
from levada.adapters.postgresql.notices import PostgresqlNotices
from levada.adapters.postgresql.outbox import PostgresqlOutbox
from levada.adapters.postgresql.sites import PostgresqlSites
from levada.ports import Faults

__all__ = ["PostgresqlStore"]


class PostgresqlStore(DatabaseStore):
    """One schema of one database. Each write is one transaction: whole, or an error and nothing.

    Threads may share an instance (they take turns); processes, on any machine, open their own and work at once.
    """

    _database: Database

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
        database = Database(self.address, limits, faults or NoFaults(), read_only=read_only)
        super().__init__(
            database,
            StoreParts(
                PostgresqlFrontier(database, limits),
                PostgresqlSites(database),
                PostgresqlDocuments(database),
                PostgresqlCensus(database),
                PostgresqlNotices(database),
                PostgresqlOutbox(database),
                PostgresqlMovers(database),
            ),
        )

    @classmethod
    def open_reader(cls, dsn: str, *, schema: str = "levada", limits: StoreLimits | None = None) -> PostgresqlStore:
        """A store that answers questions and refuses to write, beside a writer or alone."""
        return cls(dsn, schema=schema, limits=limits, read_only=True)

    def check(self) -> None:
        """Read everything once; `StoreDamaged` if the schema is not sound."""
        check(self._database)
