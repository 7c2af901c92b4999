"""Transactions on a PostgreSQL server that may go away: atomic, and repeated while another process holds a lock."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from levada.core.errors import StoreError, StoreLocked
from levada.core.protocols import Faults
from levada.store.base import StoreLimits
from levada.store.postgresql.connection import Address, connect, is_away, translated
from levada.store.postgresql.schema import prepare
from levada.store.rows import Row
from levada.store.sql.base import Parameters

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_TRIES = 6

_COUNT = """INSERT INTO counters (name, n) SELECT * FROM unnest(%s::text[], %s::bigint[])
    ON CONFLICT (name) DO UPDATE SET n = counters.n + excluded.n"""
_STEPS = """INSERT INTO counters (name, n) VALUES ('seq', %(base)s + %(count)s)
    ON CONFLICT (name) DO UPDATE SET n = greatest(counters.n, %(base)s) + %(count)s RETURNING n"""


class PostgresqlWrite:
    """A transaction in progress."""

    def __init__(self, connection: psycopg.Connection[Any], operation: str, faults: Faults, seq_base: int) -> None:
        self._connection = connection
        self._operation = operation
        self._faults = faults
        self._seq_base = seq_base
        self._counted: Counter[str] = Counter()
        self.pipeline = connection.pipeline  # sends what is written within it together

    def rows(self, sql: str, parameters: Parameters = (), /) -> list[Row]:
        return self._connection.execute(sql.encode(), parameters, binary=True).fetchall()

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> None:
        self._connection.execute(sql.encode(), parameters)

    def executemany(self, sql: str, rows: Sequence[Row], /) -> None:
        if rows:
            self._connection.cursor().executemany(sql.encode(), rows)

    def count(self, name: str, n: int = 1) -> None:
        self._counted[name] += n

    def write_counts(self) -> None:
        """Write the counters last: from here to the commit no other transaction can write them."""
        changed = sorted((name, n) for name, n in self._counted.items() if n)
        self._counted.clear()
        if changed:
            self.execute(_COUNT, [list(column) for column in zip(*changed, strict=True)])

    def take_steps(self, count: int) -> range:
        """Take `count` numbers for changes, as the last step: others wait for it until the commit."""
        if not count:
            return range(0)
        self.write_counts()
        ((last,),) = self.rows(_STEPS, {"base": self._seq_base, "count": count})
        return range(last - count + 1, last + 1)

    def reach(self, step: str) -> None:
        self._faults.reach(f"{self._operation}.{step}")


class PostgresqlDatabase:
    """One connection with one transaction at a time. Every failure of the server becomes a `StoreError`.

    A lost connection is reopened once where that repeats nothing: before a transaction begins, and for a query that
    only reads.
    """

    def __init__(self, address: Address, limits: StoreLimits, faults: Faults, *, read_only: bool) -> None:
        self.place = address.place
        self.seq_base = 0  # changes are numbered from here at least
        self._address = address
        self._limits = limits
        self._faults = faults
        self._read_only = read_only
        self._lock = threading.RLock()
        self._closed = False
        self._connection = self._connect(make=not read_only)

    @contextmanager
    def write(self, operation: str) -> Iterator[PostgresqlWrite]:
        """A transaction: committed if the block ends normally, otherwise rolled back and the failure raised."""
        import psycopg

        with self._lock:
            try:
                self._faults.reach(f"{operation}.begin")
                self._begin()
                self._faults.reach(f"{operation}.begun")
                write = PostgresqlWrite(self._connection, operation, self._faults, self.seq_base)
                yield write
                write.write_counts()
                write.reach("before-commit")
                self._commit()
                write.reach("after-commit")
            except (psycopg.Error, OSError) as error:
                self._roll_back()
                raise translated(error, self.place) from error
            except BaseException:
                self._roll_back()
                raise

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

    def mark(self) -> int | None:
        return None

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._connection.close()

    def _query(self, sql: str, parameters: Parameters) -> list[Row]:
        self._usable()
        return self._connection.execute(sql.encode(), parameters, binary=True).fetchall()

    def _begin(self) -> None:
        import psycopg

        self._usable()
        try:
            self._connection.execute("BEGIN")
        except psycopg.Error as error:
            if not self._is_lost(error):
                raise
            self._reconnect()
            self._connection.execute("BEGIN")

    def _commit(self) -> None:
        """Commit. The server answers a commit of a failed transaction with a rollback, and reports no error."""
        if self._connection.execute("COMMIT").statusmessage != "COMMIT":
            raise StoreError(f"{self.place} undid a write that had failed: nothing of this batch was written")

    def _usable(self) -> None:
        if self._closed:
            raise StoreError(f"{self.place} is closed")
        if self._connection.closed:
            self._reconnect()

    def _is_lost(self, error: psycopg.Error) -> bool:
        return self._connection.closed or is_away(error)

    def _reconnect(self) -> None:
        self._connection.close()
        self._connection = self._connect(make=False)

    def _connect(self, *, make: bool) -> psycopg.Connection[Any]:
        import psycopg

        connection = connect(self._address, self._limits, read_only=self._read_only)
        try:
            prepare(connection, self.place, self._address.schema, shard=self._limits.shard, make=make)
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
