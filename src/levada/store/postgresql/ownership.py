"""The owners of the slices of a collection's sites, in the server where machines find the collection.

Each control has a row with the end of its hold, by the server's clock, and each slice a row with its owner and how
often it changed hands. A transaction takes the lock of the collection first, so renewals come one after the other.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from levada.store.ownership import SLICES, Holds, shared_out
from levada.store.postgresql.shared_plan import SharedSession

if TYPE_CHECKING:
    import psycopg

_TABLES = """CREATE TABLE IF NOT EXISTS levada_shared.controls (
        collection text COLLATE "C" NOT NULL, control text COLLATE "C" NOT NULL, until timestamptz NOT NULL,
        PRIMARY KEY (collection, control));
    CREATE TABLE IF NOT EXISTS levada_shared.slices (
        collection text COLLATE "C" NOT NULL, slice integer NOT NULL, control text COLLATE "C",
        epoch bigint NOT NULL, PRIMARY KEY (collection, slice))"""
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('levada owners ' || %s, 0))"
_HOLD = """INSERT INTO levada_shared.controls VALUES (%s, %s, clock_timestamp() + make_interval(secs => %s))
    ON CONFLICT (collection, control) DO UPDATE SET until = excluded.until"""
_END = "DELETE FROM levada_shared.controls WHERE collection = %s AND until <= clock_timestamp()"
_FILL = """INSERT INTO levada_shared.slices SELECT %s, n, NULL, 0 FROM generate_series(0, %s) n
    ON CONFLICT (collection, slice) DO NOTHING"""
_LET_GO = """UPDATE levada_shared.slices SET control = NULL
    WHERE collection = %s AND control = %s AND slice = ANY(%s::bigint[])"""
_LEFT = "UPDATE levada_shared.slices SET control = NULL WHERE collection = %s AND control = %s"
_REMOVE = "DELETE FROM levada_shared.controls WHERE collection = %s AND control = %s"
_THERE = "SELECT control FROM levada_shared.controls WHERE collection = %s ORDER BY control"
_OWNERS = "SELECT slice, control, epoch FROM levada_shared.slices WHERE collection = %s ORDER BY slice"
_TAKE = """UPDATE levada_shared.slices SET control = %s, epoch = epoch + 1
    WHERE collection = %s AND slice = ANY(%s::bigint[])"""


class PostgresqlOwnership:
    """The table of one collection, over a session of its own."""

    def __init__(self, dsn: str, collection: str) -> None:
        self._line = SharedSession(dsn, _TABLES)
        self._collection = collection
        self.close = self._line.close

    def renew(self, name: str, released: Collection[int], seconds: float) -> Holds:
        return self._line.run(lambda session: self._renew(session, name, released, seconds))

    def leave(self, name: str) -> None:
        def remove(session: psycopg.Connection[Any]) -> None:
            with session.transaction():
                session.execute(_LOCK, (self._collection,))
                session.execute(_LEFT, (self._collection, name))
                session.execute(_REMOVE, (self._collection, name))

        self._line.run(remove)

    def _renew(self, session: psycopg.Connection[Any], name: str, released: Collection[int], seconds: float) -> Holds:
        which = self._collection
        with session.transaction():
            session.execute(_LOCK, (which,))
            with session.pipeline():
                session.execute(_HOLD, (which, name, seconds))
                session.execute(_END, (which,))
                session.execute(_LET_GO, (which, name, sorted(released)))
                asked = session.execute(_THERE, (which,)), session.execute(_OWNERS, (which,))
            there, rows = [control for (control,) in asked[0].fetchall()], asked[1].fetchall()
            if len(rows) < SLICES:
                session.execute(_FILL, (which, SLICES - 1))
                rows = session.execute(_OWNERS, (which,)).fetchall()
            owners = [owner for _, owner, _ in rows]
            take, give = shared_out(owners, there, name)
            if take:
                session.execute(_TAKE, (name, which, take))
        epochs = {number: epoch for number, owner, epoch in rows if owner == name}
        epochs |= {number: rows[number][2] + 1 for number in take}
        orphaned = [number for number in take if owners[number] is not None or not rows[number][2]]
        return Holds(epochs, give, orphaned, len(there))
