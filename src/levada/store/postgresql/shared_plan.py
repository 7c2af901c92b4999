"""The shared plan: a row in PostgreSQL by which machines find a collection, its shard plan and its settings.

An advisory lock of the session holds the plan steady: shared by all workers, exclusive for the process that
replaces it. So every process on every machine knows that pages move before the first one does. The session, and
with it the lock, ends with its process, however that ends.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from levada.core.errors import NotFound, SettingsError, StoreAway, StoreLocked
from levada.store.base import StoreLimits
from levada.store.postgresql.connection import Address, connect, is_away, translated
from levada.store.sharded.plan import PlacementRecord, ShardPlan, read_record

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

_PAUSE = 0.1  # seconds, and more with each try
_LIMITS = StoreLimits()

SCHEMA = "levada_shared"
_THERE = "SELECT to_regclass('levada_shared.collections') IS NOT NULL"
_IS_MADE = "SELECT to_regclass(%s) IS NOT NULL"
_MAKING = "SELECT pg_advisory_xact_lock(hashtextextended('levada making ' || %s, 0))"
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('levada_shared', 0))"
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
_REMOVE = "DELETE FROM levada_shared.collections WHERE name = %s"
_NAMES = "SELECT name FROM levada_shared.collections WHERE settings IS NOT NULL ORDER BY name"
_HOLD, _LET_GO = "SELECT pg_advisory_lock_shared(%s)", "SELECT pg_advisory_unlock_shared(%s)"
_TRY_ALONE, _TRY = "SELECT pg_try_advisory_lock(%s)", "SELECT pg_try_advisory_lock_shared(%s)"
_TAKE = "SELECT pg_advisory_xact_lock(%s)"


def shared_names(dsn: str) -> list[str]:
    """The collections whose pages this server leases out."""
    line = SharedSession(dsn)
    try:
        return line.run(lambda session: [name for (name,) in session.execute(_NAMES)] if _is_there(session) else [])
    finally:
        line.close()


@contextmanager
def making(dsn: str, name: str) -> Iterator[None]:
    """Nobody else makes a collection of this name meanwhile."""
    import psycopg

    address = Address(dsn, SCHEMA)
    with closing(connect(address, StoreLimits(), read_only=False)) as session:
        try:
            with session.transaction():
                session.execute(_MAKING, (name,))
                yield
        except psycopg.Error as error:
            raise translated(error, address.place) from error


class SharedPlan:
    """The row of one collection. Threads may share an instance: they take turns."""

    def __init__(self, dsn: str, name: str, away_seconds: float = 0.0) -> None:
        self._line = SharedSession(dsn, away_seconds=away_seconds)
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
        """Create the row. Until now another copy decided, so whatever an earlier try left there does not count."""

        def make(session: psycopg.Connection[Any]) -> None:
            with session.transaction():
                session.execute(ONE_AT_A_TIME)
                if not _is_there(session):
                    for statement in _MAKE.split(";"):
                        session.execute(statement.encode())
                session.execute(_PUBLISH, (self._name, msgspec.json.encode(record)))

        with self._turn:
            self._line.run(make)

    def replace(self, record: PlacementRecord) -> None:
        """Wait until no process holds the old plan steady; durable when it returns."""

        def write(session: psycopg.Connection[Any]) -> None:
            with session.transaction():
                session.execute(_TAKE, (self._key,))
                session.execute(_REPLACE, (msgspec.json.encode(record), self._name))

        with self._turn:
            self._line.run(write)

    @contextmanager
    def frozen(self) -> Iterator[PlacementRecord]:
        """In a session of its own, whose transaction holds the lock."""
        import psycopg

        with closing(connect(self._line.address, StoreLimits(), read_only=False)) as session:
            try:
                session.execute("BEGIN")
                session.execute(_TAKE, (self._key,))
                self._take_in(session, session.execute(_REVISION, (self._name,)).fetchone())
            except psycopg.Error as error:
                raise translated(error, self._line.place) from error
            assert self._record is not None
            yield self._record

    def remove(self) -> None:
        """Delete the row: machines without the folder find the collection no longer."""

        def delete(session: psycopg.Connection[Any]) -> None:
            if _is_there(session):
                session.execute(_REMOVE, (self._name,))

        with self._turn:
            self._line.run(delete)

    def read(self) -> PlacementRecord:
        with self.steady():
            assert self._record is not None
            return self._record

    @contextmanager
    def steady(self) -> Iterator[ShardPlan]:
        """Threads may hold it together, and enter here and leave in different threads."""
        with self._turn:
            if self._depth == 0:
                self._line.run(self._hold)
            self._depth += 1
            assert self._record is not None
            plan = self._record.plan
        try:
            yield plan
        finally:
            with self._turn:
                self._depth -= 1
                if self._depth == 0:
                    self._line.let_go(_LET_GO, self._key)

    def settings(self) -> bytes | None:
        """The settings of the last scheduler; None if there never was one."""
        with self._turn:
            row = self._line.run(lambda session: session.execute(_SETTINGS, (self._name,)).fetchone())
        return None if row is None or row[0] is None else bytes(row[0])

    def put_settings(self, content: bytes) -> None:
        with self._turn:
            self._line.run(lambda session: session.execute(_SET_SETTINGS, (content, self._name)))

    def _hold(self, session: psycopg.Connection[Any]) -> None:
        """Lock the plan, then read it: one round trip unless it changed. A read before the lock could be
        outdated."""
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


class MovingLock:
    """The advisory lock under which pages of a collection move: alone, or shared by those who need them to stay."""

    def __init__(self, dsn: str, name: str, *, alone: bool) -> None:
        import psycopg

        key = int.from_bytes(sha256(f"levada moving {name}".encode()).digest()[:8], "big", signed=True)
        self._address = Address(dsn, SCHEMA)
        self._session = connect(self._address, StoreLimits(), read_only=False)
        try:
            (taken,) = self._session.execute(_TRY_ALONE if alone else _TRY, (key,)).fetchone() or (False,)
        except psycopg.Error as error:
            self._session.close()
            raise translated(error, self._address.place) from error
        if not taken:
            self._session.close()
            what = "moved or exported" if alone else "moved"
            place = self._address.place
            raise StoreLocked(f"pages are being {what} by another machine (lock of {name} in {place}): wait for it")

    def check(self) -> None:
        """Raise if the session was cut, and the lock with it."""
        import psycopg

        try:
            self._session.execute("SELECT 1")
        except psycopg.Error as error:
            raise translated(error, self._address.place) from error

    def close(self) -> None:
        self._session.close()


class SharedSession:
    """A session that is opened when it is needed, and once more if it was lost; `tables` makes those that it needs."""

    def __init__(self, dsn: str, tables: str = "", *, away_seconds: float = 0.0) -> None:
        self._tables = tables
        self.away_seconds = away_seconds
        self.address = Address(dsn, SCHEMA)
        self.place = self.address.place
        self._session: psycopg.Connection[Any] | None = None

    def run(self, ask: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Run a query that may be repeated."""
        import psycopg

        until = pause = 0.0
        may_repeat = self._session is not None
        while True:
            try:
                return ask(self._opened())
            except psycopg.Error as error:
                lost = self._session is None or self._session.closed or is_away(error)
                self.close()  # and with it its locks
                said = translated(error, self.place)
                if not lost:
                    raise said from error
            except StoreAway as error:
                said = error
            if may_repeat:
                may_repeat = False
                continue
            until = until or monotonic() + self.away_seconds
            if monotonic() >= until:
                raise said
            sleep(pause)
            pause = min(pause + _PAUSE, 10 * _PAUSE)

    def _are_made(self, session: psycopg.Connection[Any]) -> bool:
        """Asked first: who may not make tables may still use them."""
        names = re.findall(rf"IF NOT EXISTS ({SCHEMA}\.\w+)", self._tables)
        return all((session.execute(_IS_MADE, (name,)).fetchone() or (False,))[0] for name in names)

    def let_go(self, sql: str, key: int) -> None:
        """Release a lock. A lost session has released everything."""
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
            self._session = connect(self.address, _LIMITS, read_only=False)
            if self._session.own_settings is not None:
                self.close()
                raise SettingsError(
                    f"{self.place} is behind a pool: 'levada control' and 'levada work' hold a lock for as long as a "
                    "session, so give them an address of the server itself"
                )
            if self._tables and not self._are_made(self._session):
                with self._session.transaction():
                    self._session.execute(ONE_AT_A_TIME)
                    self._session.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}; {self._tables}".encode())
        return self._session


def _is_there(session: psycopg.Connection[Any]) -> bool:
    return bool((session.execute(_THERE).fetchone() or (False,))[0])
