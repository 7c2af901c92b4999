"""Transactions on a PostgreSQL server that may go away: atomic, and repeated while another process holds a lock.

A transaction is sent as a pipeline: a statement travels with the next question, and the last ones with the commit. So
what a transaction costs over a slow line is the number of its questions, plus one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

from levada.core.errors import StoreAway, StoreError, StoreLocked
from levada.core.protocols import Faults
from levada.store.base import StoreLimits
from levada.store.postgresql.connection import Address, connect, translated
from levada.store.postgresql.epochs import renewed_epoch
from levada.store.postgresql.schema import prepare
from levada.store.rows import Row
from levada.store.sql.base import Asked, Database, Parameters, Write

if TYPE_CHECKING:
    import psycopg

    from levada.store.postgresql.session import Session

log = logging.getLogger(__name__)

T = TypeVar("T")

_TRIES = 6  # of an operation that finds what it needs locked
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 1.0  # seconds between two tries to reach a server
_READS_ONLY = "25006"  # of a writer's session: its server was demoted
_TABLES = """SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relkind = 'r' ORDER BY c.relname"""

_COUNT = """INSERT INTO counters (name, n) SELECT * FROM unnest(%s::text[], %s::bigint[])
    ON CONFLICT (name) DO UPDATE SET n = counters.n + excluded.n"""

_DROPPED = "coalesce(nullif(current_setting('levada.dropped', true), ''), '0')::bigint"
_DROP = f"""WITH dropped AS ({{delete}} RETURNING 1)
    SELECT set_config('levada.dropped', ({_DROPPED} + count(*))::text, true) FROM dropped"""
_COUNT_DROPPED = f"UPDATE counters SET n = n - {_DROPPED} WHERE name = 'versions'"


class _Cut(StoreAway):
    """The connection was lost while it was used. The server may have ended that one alone."""


class PostgresqlWrite(Write):
    """A transaction in progress."""

    _take = """INSERT INTO counters (name, n) VALUES (%(name)s, %(base)s + %(count)s)
        ON CONFLICT (name) DO UPDATE SET n = greatest(counters.n, %(base)s) + %(count)s RETURNING n"""

    def __init__(
        self, connection: Session, pipeline: psycopg.Pipeline, operation: str, faults: Faults, seq_base: int
    ) -> None:
        super().__init__(operation, faults, seq_base)
        self._connection = connection
        self._pipeline = pipeline
        self._has_dropped = False

    def ask(self, sql: str, parameters: Parameters = (), /) -> Asked:
        cursor = self._connection.execute(sql.encode(), parameters, binary=True)

        def rows() -> list[Row]:
            # Synced, not only flushed: the server takes a session for idle within a transaction only then, and frees
            # its locks if it hears no more of it.
            if cursor.pgresult is None:
                self._pipeline.sync()
            return cursor.fetchall()

        return rows

    def rows(self, sql: str, parameters: Parameters = (), /) -> list[Row]:
        return self.ask(sql, parameters)()

    def execute(self, sql: str, parameters: Parameters = (), /) -> None:
        self._connection.execute(sql.encode(), parameters)

    def executemany(self, sql: str, rows: Sequence[Row], /) -> None:
        if rows:
            self._connection.cursor().executemany(sql.encode(), rows)

    def write_counts(self) -> None:
        """Write the counters last: from here to the commit no other transaction can write them."""
        if changed := self.changed_counts():
            self.execute(_COUNT, [list(column) for column in zip(*changed, strict=True)])
        if self._has_dropped:
            self.execute(_COUNT_DROPPED)
            self._has_dropped = False

    def drop_versions(self, delete: str, versions: Sequence[tuple[int, int]]) -> None:
        """Delete versions (page, version), to be counted by the server."""
        self.execute(_DROP.format(delete=delete), [list(column) for column in zip(*versions, strict=True)])
        self._has_dropped = True

    def number_steps(self, count: int) -> Sequence[int]:
        """As distances from the newest number, which only the server knows before the commit."""
        if count:
            self.write_counts()
            self.execute(self._take, {"name": "seq", "base": self._seq_base, "count": count})
        return range(count - 1, -1, -1)


class PostgresqlDatabase(Database[PostgresqlWrite]):
    """One connection to a server. A lost one is opened again before anything is asked.

    A writer waits for a server that is away, for `StoreLimits.away_seconds`. A reader says at once that it is away,
    to the threads that wait for their turn too.
    """

    def __init__(
        self, address: Address, limits: StoreLimits, faults: Faults, *, read_only: bool, older: bool = False
    ) -> None:
        super().__init__(address.place, faults)
        self._address = address
        self._limits = limits
        self._gave_up = False  # the server was waited for in vain
        self._read_only = read_only
        self._older = older
        self._closed = False
        self._failed_at, self._failure = 0.0, ""
        self._is_committing = False
        self._pipeline: AbstractContextManager[psycopg.Pipeline] | None = None
        self.epoch = ""  # of the store that is written to
        self._connection = self._connect(make=not read_only and not older)

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return self.persist(lambda: self._read(sql, parameters))

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

        schema = self._address.schema
        tables = [name for (name,) in self.rows(_TABLES, (schema,))]
        with self.unhurried():
            try:
                for name in tables:
                    self._faults.reach("compact.begin")
                    self._connection.execute(sql.SQL("VACUUM (FULL) {}").format(sql.Identifier(schema, name)))
                self._faults.reach("compact.end")
            except psycopg.Error as error:
                raise translated(error, self.place) from error

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Let the questions inside take as long as they need."""
        with self._lock:
            self._usable()
            with self._connection.unhurried():
                yield

    def persist(self, operation: Callable[[], T]) -> T:
        """Repeat an operation that is one question or one transaction.

        A transaction that waited for a lock in vain, or whose connection was lost, was rolled back, so it may be
        repeated. Ending a crawl for a lock that is held for some seconds, or for a failover, would cost more.
        """
        tries, pause, was_cut, until = 0, 0.0, False, 0.0
        while True:
            try:
                done = operation()
                self._gave_up = False
                return done
            except StoreLocked as error:
                tries += 1
                if tries >= _TRIES:
                    raise
                log.warning("%s; %s tries are left", error, _TRIES - tries)
            except StoreAway as error:
                if isinstance(error, _Cut) and not was_cut:
                    was_cut = True
                    continue
                now = monotonic()
                patient = not (self._read_only or self._gave_up)
                until = until or now + (self._limits.away_seconds if patient else 0.0)
                if now >= until:
                    self._gave_up = True  # what is done while the crawl ends does not wait as long again
                    raise
                if not pause:
                    log.warning("%s; waiting up to %g s for it", error, until - now)
                sleep(min(pause, max(0.0, until - now)))
                pause = min(2 * pause, _LONGEST_PAUSE) or _FIRST_PAUSE

    def _read(self, sql: str, parameters: Parameters) -> list[Row]:
        import psycopg

        with self._turn():
            try:
                return self._query(sql, parameters)
            except psycopg.Error as error:
                raise self._broken(error) from error

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """A turn of one thread. A reader who waited while the server did not answer another one gets no better
        answer."""
        began = monotonic()
        with self._lock:
            if self._read_only and self._failed_at > began:
                raise StoreAway(self._failure)
            self._usable()
            yield

    def _query(self, sql: str, parameters: Parameters) -> list[Row]:
        connection = self._connection
        if connection.own_settings is None:
            return connection.execute(sql.encode(), parameters, binary=True).fetchall()
        with connection.pipeline():
            connection.execute("BEGIN")
            connection.make(connection.own_settings, local=True)
            asked = connection.execute(sql.encode(), parameters, binary=True)
            connection.execute("COMMIT")
        return asked.fetchall()

    def _begin(self, operation: str) -> PostgresqlWrite:
        connection = self._connection
        self._is_committing = False
        self._pipeline = connection.pipeline()
        pipeline = self._pipeline.__enter__()
        connection.execute("BEGIN")
        if connection.own_settings is not None:
            connection.make(connection.own_settings, local=True)
        return PostgresqlWrite(connection, pipeline, operation, self._faults, self.seq_base)

    def _commit(self) -> None:
        """Commit. The server answers a commit of a failed transaction with a rollback, and reports no error."""
        self._is_committing = True
        # A commit that waits for a synchronous standby must not be cut short: it would be there, and reported as done,
        # but not on the standby.
        self._connection.execute("SELECT set_config('statement_timeout', '0', true)")
        done = self._connection.execute("COMMIT")
        self._end_pipeline()
        self._is_committing = False
        if done.statusmessage != "COMMIT":
            raise StoreError(f"{self.place} undid a write that had failed: nothing of this batch was written")

    def _usable(self) -> None:
        if self._closed:
            raise StoreError(f"{self.place} is closed")
        if not self._connection.is_alive:
            self._reconnect()

    def _translated(self, error: BaseException) -> StoreError | None:
        import psycopg

        if isinstance(error, psycopg.Error):
            return self._broken(error)
        return translated(error, self.place) if isinstance(error, OSError) else None

    def _broken(self, error: psycopg.Error) -> StoreError:
        """What went wrong, in our words. A connection that is lost is not used again."""
        from levada.store.postgresql.session import Unanswered

        said = translated(error, self.place)
        if error.sqlstate == _READS_ONLY and not self._read_only:
            self._connection.close()
            return StoreAway(f"{self.place} was demoted to a standby: start again when there is a primary")
        if isinstance(said, StoreAway):
            self._failed_at, self._failure = monotonic(), str(said)
            is_lost = self._connection.closed
            if is_lost and not isinstance(error, Unanswered):
                said = _Cut(str(said))
            said.in_doubt = is_lost and self._is_committing
        return said

    def _reconnect(self) -> None:
        self._connection.close()
        try:
            self._connection = self._connect(make=False)
        except StoreAway as error:
            self._failed_at, self._failure = monotonic(), str(error)
            raise

    def _connect(self, *, make: bool) -> Session:
        import psycopg

        connection = connect(self._address, self._limits, read_only=self._read_only)
        try:
            schema, shard = self._address.schema, self._limits.shard
            with connection.settled():
                prepare(connection, self.place, schema, shard=shard, make=make, older=self._older)
                if not self._read_only and not self._older:
                    self.epoch = renewed_epoch(connection)
        except psycopg.Error as error:
            connection.close()
            raise translated(error, self.place) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _end_pipeline(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.__exit__(None, None, None)

    def _roll_back(self) -> None:
        import psycopg
        from psycopg.pq import TransactionStatus

        connection = self._connection
        try:
            with suppress(psycopg.Error):  # the first error says why
                self._end_pipeline()
            if connection.closed:
                return
            status = connection.info.transaction_status
            if status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
                connection.execute("ROLLBACK")
            elif status is TransactionStatus.ACTIVE:  # interrupted within a statement: the server rolls it back
                connection.close()
        except psycopg.Error:
            connection.close()
