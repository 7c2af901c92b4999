"""Where do machines that share only PostgreSQL find a collection? In a row: its plan of shards, and its settings.

The plan is held steady by a lock of the server (advisory, of the session; shared by all who work, exclusive for
whoever replaces it). So everybody on every machine has seen that pages move before the first one does. The session
ends with its process, however that ends, and the lock with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from levada.adapters.limits import StoreLimits
from levada.adapters.postgresql.connecting import Address, connect
from levada.adapters.postgresql.failures import is_away, translated
from levada.adapters.sharded.plan import ShardPlan
from levada.adapters.sharded.plan_file import PlacementRecord, read_record
from levada.errors import NotFound, StoreError

if TYPE_CHECKING:
    import psycopg

__all__ = ["SharedPlan", "shared_names"]

T = TypeVar("T")

SCHEMA = "levada_shared"
_THERE = "SELECT to_regclass('levada_shared.collections') IS NOT NULL"
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('levada_shared', 0))"
_MAKE = """CREATE SCHEMA IF NOT EXISTS levada_shared;
    CREATE TABLE IF NOT EXISTS levada_shared.collections (
        name text COLLATE "C" PRIMARY KEY, revision bigint NOT NULL, placement bytea NOT NULL, settings bytea)"""
_PUBLISH = """INSERT INTO levada_shared.collections (name, revision, placement) VALUES (%s, 1, %s)
    ON CONFLICT (name) DO UPDATE SET revision = collections.revision + 1, placement = excluded.placement"""
_REPLACE = "UPDATE levada_shared.collections SET revision = revision + 1, placement = %s WHERE name = %s"
_REVISION = "SELECT revision FROM levada_shared.collections WHERE name = %s"
_PLACEMENT = "SELECT revision, placement FROM levada_shared.collections WHERE name = %s"
_SETTINGS = "SELECT settings FROM levada_shared.collections WHERE name = %s"
_SET_SETTINGS = "UPDATE levada_shared.collections SET settings = %s WHERE name = %s"
_NAMES = "SELECT name FROM levada_shared.collections WHERE settings IS NOT NULL ORDER BY name"
_HOLD, _LET_GO = "SELECT pg_advisory_lock_shared(%s)", "SELECT pg_advisory_unlock_shared(%s)"
_TAKE = "SELECT pg_advisory_xact_lock(%s)"


def shared_names(dsn: str) -> list[str]:
    """The collections that somebody hands out by this server."""
    line = _Line(dsn)
    try:
        return line.run(lambda session: [name for (name,) in session.execute(_NAMES)] if _is_there(session) else [])
    finally:
        line.close()


class SharedPlan:
    """One collection's row. Threads may share an instance: they take turns."""

    def __init__(self, dsn: str, name: str) -> None:
        self._line = _Line(dsn)
        self._name = name
        self._key = int.from_bytes(sha256(f"levada plan {name}".encode()).digest()[:8], "big", signed=True)
        self._turn = threading.RLock()
        self._depth = 0
        self._revision = 0
        self._record: PlacementRecord | None = None

    def close(self) -> None:
        with self._turn:
            self._line.close()

    def publish(self, record: PlacementRecord) -> None:
        """Make the row. Until now another copy was the truth, so whatever an earlier try left there is not."""

        def make(session: psycopg.Connection[Any]) -> None:
            with session.transaction():
                session.execute(_ONE_AT_A_TIME)
                if not _is_there(session):
                    for statement in _MAKE.split(";"):
                        session.execute(statement.encode())
                session.execute(_PUBLISH, (self._name, msgspec.json.encode(record)))

        with self._turn:
            self._line.run(make)

    def replace(self, record: PlacementRecord) -> None:
        """Once nobody holds the old one steady; durable when this returns."""

        def write(session: psycopg.Connection[Any]) -> None:
            with session.transaction():
                session.execute(_TAKE, (self._key,))
                session.execute(_REPLACE, (msgspec.json.encode(record), self._name))

        with self._turn:
            self._line.run(write)

    def read(self) -> PlacementRecord:
        with self.steady():
            assert self._record is not None
            return self._record

    @contextmanager
    def steady(self) -> Iterator[ShardPlan]:
        with self._turn:
            if self._depth == 0:
                self._line.run(self._hold)
            self._depth += 1
            try:
                assert self._record is not None
                yield self._record.plan
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._line.let_go(_LET_GO, self._key)

    def settings(self) -> bytes | None:
        """As the last who handed out pages had them; None if nobody ever did."""
        with self._turn:
            row = self._line.run(lambda session: session.execute(_SETTINGS, (self._name,)).fetchone())
        return None if row is None or row[0] is None else bytes(row[0])

    def put_settings(self, content: bytes) -> None:
        with self._turn:
            self._line.run(lambda session: session.execute(_SET_SETTINGS, (content, self._name)))

    def _hold(self, session: psycopg.Connection[Any]) -> None:
        """One round trip unless there is news; the look comes after the lock, or it might be of before."""
        with session.pipeline():
            session.execute(_HOLD, (self._key,))
            looked = session.execute(_REVISION, (self._name,))
        try:
            self._take_in(session, looked.fetchone())
        except BaseException:
            self._line.let_go(_LET_GO, self._key)
            raise

    def _take_in(self, session: psycopg.Connection[Any], row: tuple[int] | None) -> None:
        if row is None:
            raise NotFound(
                f"{self._line.place} does not know the collection {self._name}: start 'levada control' again"
            )
        if self._record is None or row[0] != self._revision:
            revision, content = session.execute(_PLACEMENT, (self._name,)).fetchone() or (0, b"")
            self._record = read_record(bytes(content), f"the plan of {self._name} in {self._line.place}")
            self._revision = revision


class _Line:
    """A session that is made when it is needed, and once more if it was lost."""

    def __init__(self, dsn: str) -> None:
        self._address = Address(dsn, SCHEMA)
        self.place = self._address.place
        self._session: psycopg.Connection[Any] | None = None

    def run(self, ask: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Whatever is asked here may be asked twice."""
        import psycopg

        for is_last in (self._session is None, True):
            try:
                return ask(self._opened())
            except psycopg.Error as error:
                lost = self._session is None or self._session.closed or is_away(error)
                self.close()  # and with it whatever it held
                if not lost or is_last:
                    raise translated(error, self.place) from error
        raise StoreError(f"{self.place} is away")

    def let_go(self, sql: str, key: int) -> None:
        """A session that was lost has let go of everything."""
        import psycopg

        if self._session is not None:
            try:
                self._session.execute(sql.encode(), (key,))
            except psycopg.Error:
                self.close()

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _opened(self) -> psycopg.Connection[Any]:
        if self._session is None or self._session.closed:
            self._session = connect(self._address, StoreLimits(), read_only=False)
        return self._session


def _is_there(session: psycopg.Connection[Any]) -> bool:
    return bool((session.execute(_THERE).fetchone() or (False,))[0])
