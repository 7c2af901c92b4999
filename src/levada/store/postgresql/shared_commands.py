"""The command queue of a collection that lies on servers: beside its shared plan, where every machine finds it.

Every control of the collection executes every command, in their order, and each knows how far it is. A command stays
for ten minutes after one of them has executed it: who starts later begins with the first that nobody has executed,
and finds what the others have left behind in the store and in the desired state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from levada.core.commands import ControlCommand, DesiredState
from levada.store.commands import command_in, desired_state_in, packed, without
from levada.store.postgresql.shared_plan import SharedSession

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
Row = tuple[Any, ...]

_TABLES = """CREATE TABLE IF NOT EXISTS levada_shared.commands (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection text COLLATE "C" NOT NULL,
        body bytea NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE TABLE IF NOT EXISTS levada_shared.desired_states (
        collection text COLLATE "C" PRIMARY KEY, number bigint NOT NULL, body bytea NOT NULL)"""
# One after the other: a number is not seen before those below it.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('levada commands ' || %s, 0))"
_EXECUTED = "SELECT coalesce((SELECT number FROM levada_shared.desired_states WHERE collection = %s), 0)"
_TIDY = f"""DELETE FROM levada_shared.commands
    WHERE collection = %s AND at < clock_timestamp() - interval '10 minutes' AND number <= ({_EXECUTED})"""
_SUBMIT = "INSERT INTO levada_shared.commands (collection, body) VALUES (%s, %s) RETURNING number"
_ALL = "SELECT number, body FROM levada_shared.commands WHERE collection = %s ORDER BY number"
_AFTER = "SELECT number, body FROM levada_shared.commands WHERE collection = %s AND number > %s ORDER BY number"
_WAITING = (
    f"SELECT number, body FROM levada_shared.commands WHERE collection = %s AND number > ({_EXECUTED}) ORDER BY number"
)
_DELETE = "DELETE FROM levada_shared.commands WHERE number = %s"
_REPLACE = "UPDATE levada_shared.commands SET body = %s WHERE number = %s"
_DESIRED = "SELECT body FROM levada_shared.desired_states WHERE collection = %s"
_DESIRE = """INSERT INTO levada_shared.desired_states (collection, number, body) VALUES (%s, %s, %s)
    ON CONFLICT (collection) DO UPDATE SET number = excluded.number, body = excluded.body
    WHERE desired_states.number <= excluded.number"""


class PostgresqlCommandQueue:
    """`levada.core.protocols.CommandQueue` of one collection. A lost connection may give a command twice, which does
    no more than once.

    With `executing`, it is of a crawl, which executes what is submitted from now on whoever else does.
    """

    def __init__(self, dsn: str, collection: str, *, executing: bool = False) -> None:
        self._line = SharedSession(dsn, _TABLES)
        self._collection = collection
        self._position: int | None = None  # None: that of the one who is furthest
        if executing:
            ((self._position,),) = self._rows(_EXECUTED, (collection,))

    def submit(self, command: ControlCommand) -> int:
        own = self._collection

        def add(session: psycopg.Connection[Any]) -> int:
            with session.transaction():
                session.execute(_LOCK, (own,))
                session.execute(_TIDY.encode(), (own, own))
                row = session.execute(_SUBMIT, (own, packed(command))).fetchone()
            assert row is not None
            return int(row[0])

        return self._line.run(add)

    def pending(self) -> list[tuple[int, ControlCommand]]:
        own = self._collection
        rows = self._rows(_WAITING, (own, own)) if self._position is None else self._rows(_AFTER, (own, self._position))
        return self._read(rows)

    def forget(self, is_forgotten: Callable[[str], bool]) -> None:
        """Delete what commands ask about forgotten URLs and sites."""
        for number, command in self._read(self._rows(_ALL, (self._collection,))):
            left = without(command, is_forgotten)
            if left is None:
                self._do(_DELETE, (number,))
            elif left != command:
                self._do(_REPLACE, (packed(left), number))

    def mark_done(self, number: int, desired_state: DesiredState) -> None:
        self._do(_DESIRE, (self._collection, number, packed(desired_state)))
        self._position = max(number, self._position or 0)

    def desired_state(self) -> DesiredState:
        rows = self._rows(_DESIRED, (self._collection,))
        return desired_state_in(bytes(rows[0][0]), self._line.place) if rows else DesiredState()

    def compact(self) -> None:
        """The server does that by itself."""

    def close(self) -> None:
        self._line.close()

    def _read(self, rows: list[Row]) -> list[tuple[int, ControlCommand]]:
        return [(number, command_in(bytes(body), self._line.place)) for number, body in rows]

    def _rows(self, sql: str, parameters: tuple[Any, ...]) -> list[Row]:
        return self._line.run(lambda session: session.execute(sql.encode(), parameters).fetchall())

    def _do(self, sql: str, parameters: tuple[Any, ...]) -> None:
        self._line.run(lambda session: session.execute(sql.encode(), parameters))
