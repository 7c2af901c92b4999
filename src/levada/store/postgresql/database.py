"""Transactions on a PostgreSQL server that may go away: atomic, and repeated while another process holds a lock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from levada.core.errors import StoreError, StoreLocked
from levada.core.protocols import Faults
from levada.store.base import StoreLimits
from levada.store.postgresql.connection import Address, connect, is_away, translated
from levada.store.postgresql.schema import prepare
from levada.store.rows import Row
from levada.store.sql.base import Database, Parameters, Write

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_TRIES = 6
_TABLES = """SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind = 'r' ORDER BY c.relname"""

_COUNT = """INSERT INTO counters (name, n) SELECT * FROM unnest(%s::text[], %s::bigint[])
    ON CONFLICT (name) DO UPDATE SET n = counters.n + excluded.n"""


class PostgresqlWrite(Write):
    """A transaction in progress."""

    _take = """INSERT INTO counters (name, n) VALUES (%(name)s, %(base)s + %(count)s)
        ON CONFLICT (name) DO UPDATE SET n = greatest(counters.n, %(base)s) + %(count)s RETURNING n"""

    def __init__(self, connection: psycopg.Connection[Any], operation: str, faults: Faults, seq_base: int) -> None:
        super().__init__(operation, faults, seq_base)
        self._connection = connection
        self.pipeline = connection.pipeline

    def rows(self, sql: str, parameters: Parameters = (), /) -> list[Row]:
        return self._connection.execute(sql.encode(), parameters, binary=True).fetchall()

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> None:
        self._connection.execute(sql.encode(), parameters)

    def executemany(self, sql: str, rows: Sequence[Row], /) -> None:
        if rows:
            self._connection.cursor().executemany(sql.encode(), rows)

    def write_counts(self) -> None:
        """Write the counters last: from here to the commit no other transaction can write them."""
        if changed := self.changed_counts():
            self.execute(_COUNT, [list(column) for column in zip(*changed, strict=True)])


class PostgresqlDatabase(Database[PostgresqlWrite]):
    """One connection to a server. A lost one is reopened once where that repeats nothing: before a transaction
    begins, and for a query that only reads."""

    def __init__(
        self, address: Address, limits: StoreLimits, faults: Faults, *, read_only: bool, older: bool = False
    ) -> None:
        super().__init__(address.place, faults)
        self._address = address
        self._limits = limits
        self._read_only = read_only
        self._older = older
        self._closed = False
        self._connection = self._connect(make=not read_only and not older)

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        import psycopg

        with self._lock:
            try:
                return self._query(sql, parameters)
            except psycopg.Error as error:
                if not self._is_lost(error):
                    raise translated(error, self.place) from error
                self._reconnect()
            try:
                return self._query(sql, parameters)
            except psycopg.Error as error:
                raise translated(error, self.place) from error

    def format(self) -> int:
        ((version,),) = self.rows("SELECT format FROM levada_store")
        return int(version)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._connection.close()

    def compact(self) -> None:
        """Write every table anew without what was deleted. Needs each table for itself, one after the other."""
        import psycopg
        from psycopg import sql

        tables = [name for (name,) in self.rows(_TABLES)]
        with self._lock:
            self._usable()
            try:
                for name in tables:
                    self._faults.reach("compact.begin")
                    self._connection.execute(sql.SQL("VACUUM (FULL) {}").format(sql.Identifier(name)))
                self._faults.reach("compact.end")
            except psycopg.Error as error:
                raise translated(error, self.place) from error

    def _query(self, sql: str, parameters: Parameters) -> list[Row]:
        self._usable()
        return self._connection.execute(sql.encode(), parameters, binary=True).fetchall()

    def _begin(self, operation: str) -> PostgresqlWrite:
        import psycopg

        try:
            self._connection.execute("BEGIN")
        except psycopg.Error as error:
            if not self._is_lost(error):
                raise
            self._reconnect()
            self._connection.execute("BEGIN")
        return PostgresqlWrite(self._connection, operation, self._faults, self.seq_base)

    def _commit(self) -> None:
        """Commit. The server answers a commit of a failed transaction with a rollback, and reports no error."""
        if self._connection.execute("COMMIT").statusmessage != "COMMIT":
            raise StoreError(f"{self.place} undid a write that had failed: nothing of this batch was written")

    def _usable(self) -> None:
        if self._closed:
            raise StoreError(f"{self.place} is closed")
        if self._connection.closed:
            self._reconnect()

    def _translated(self, error: BaseException) -> StoreError | None:
        import psycopg

        return translated(error, self.place) if isinstance(error, psycopg.Error | OSError) else None

    def _is_lost(self, error: psycopg.Error) -> bool:
        return self._connection.closed or is_away(error)

    def _reconnect(self) -> None:
        self._connection.close()
        self._connection = self._connect(make=False)

    def _connect(self, *, make: bool) -> psycopg.Connection[Any]:
        import psycopg

        connection = connect(self._address, self._limits, read_only=self._read_only)
        try:
            schema, shard = self._address.schema, self._limits.shard
            prepare(connection, self.place, schema, shard=shard, make=make, older=self._older)
        except psycopg.Error as error:
            connection.close()
            raise translated(error, self.place) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _roll_back(self) -> None:
        import psycopg
        from psycopg.pq import TransactionStatus

        status = self._connection.info.transaction_status
        try:
            if status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
                self._connection.execute("ROLLBACK")
            elif status is TransactionStatus.ACTIVE:  # interrupted within a statement: the server rolls it back
                self._connection.close()
        except psycopg.Error:
            self._connection.close()


def patient(operation: Callable[P, T]) -> Callable[P, T]:
    """Repeat an operation that is one transaction while another process holds what it needs.

    A transaction that waited in vain was rolled back, so it may be repeated; the wait for the lock itself separates
    two tries. Ending a crawl because of a lock held for some seconds would cost more.
    """

    @wraps(operation)
    def retried(*args: P.args, **kwargs: P.kwargs) -> T:
        for left in range(_TRIES - 1, 0, -1):
            try:
                return operation(*args, **kwargs)
            except StoreLocked as error:
                log.warning("%s; %s tries are left", error, left)
        return operation(*args, **kwargs)

    return retried
