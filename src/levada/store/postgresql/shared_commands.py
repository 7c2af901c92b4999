"""The command queue of a collection that lies on servers: beside its shared plan, where every machine finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from levada.core.commands import ControlCommand, DesiredState
from levada.store.commands import command_in, desired_state_in, packed, without
from levada.store.postgresql.shared_plan import ONE_AT_A_TIME, SharedSession

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

_THERE = "SELECT to_regclass('levada_shared.commands') IS NOT NULL"
_MAKE = (
    ONE_AT_A_TIME,
    "CREATE SCHEMA IF NOT EXISTS levada_shared",
    """CREATE TABLE IF NOT EXISTS levada_shared.commands (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection text COLLATE "C" NOT NULL,
        body bytea NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS levada_shared.desired_states (
        collection text COLLATE "C" PRIMARY KEY, body bytea NOT NULL)""",
)
_SUBMIT = "INSERT INTO levada_shared.commands (collection, body) VALUES (%s, %s) RETURNING number"
_PENDING = "SELECT number, body FROM levada_shared.commands WHERE collection = %s ORDER BY number"
_DONE = "DELETE FROM levada_shared.commands WHERE collection = %s AND number <= %s"
_DELETE = "DELETE FROM levada_shared.commands WHERE number = %s"
_REPLACE = "UPDATE levada_shared.commands SET body = %s WHERE number = %s"
_DESIRED = "SELECT body FROM levada_shared.desired_states WHERE collection = %s"
_DESIRE = """INSERT INTO levada_shared.desired_states (collection, body) VALUES (%s, %s)
    ON CONFLICT (collection) DO UPDATE SET body = excluded.body"""


class PostgresqlCommandQueue:
    """`levada.core.protocols.CommandQueue` of one collection. A lost connection may give a command twice, which does
    no more than once."""

    def __init__(self, dsn: str, collection: str) -> None:
        self._line = SharedSession(dsn)
        self._collection = collection
        self._is_made = False

    def submit(self, command: ControlCommand) -> int:
        rows = self._run(lambda session: session.execute(_SUBMIT, (self._collection, packed(command))).fetchall())
        return int(rows[0][0])

    def pending(self) -> list[tuple[int, ControlCommand]]:
        rows = self._run(lambda session: session.execute(_PENDING, (self._collection,)).fetchall())
        return [(number, command_in(bytes(body), self._line.place)) for number, body in rows]

    def forget(self, is_forgotten: Callable[[str], bool]) -> None:
        """Delete what waiting commands ask about forgotten URLs and sites."""
        for number, command in self.pending():
            left = without(command, is_forgotten)
            if left is None:
                self._do((_DELETE, (number,)))
            elif left != command:
                self._do((_REPLACE, (packed(left), number)))

    def mark_done(self, number: int, desired_state: DesiredState) -> None:
        self._do((_DONE, (self._collection, number)), (_DESIRE, (self._collection, packed(desired_state))))

    def desired_state(self) -> DesiredState:
        rows = self._run(lambda session: session.execute(_DESIRED, (self._collection,)).fetchall())
        return desired_state_in(bytes(rows[0][0]), self._line.place) if rows else DesiredState()

    def compact(self) -> None:
        """The server does that by itself."""

    def close(self) -> None:
        self._line.close()

    def _do(self, *statements: tuple[str, tuple[Any, ...]]) -> None:
        def write(session: psycopg.Connection[Any]) -> None:
            with session.transaction():
                for statement, parameters in statements:
                    session.execute(statement.encode(), parameters)

        self._run(write)

    def _run(self, ask: Callable[[psycopg.Connection[Any]], T]) -> T:
        def prepared(session: psycopg.Connection[Any]) -> T:
            if not self._is_made:
                _make(session)
                self._is_made = True
            return ask(session)

        return self._line.run(prepared)


def _make(session: psycopg.Connection[Any]) -> None:
    if (session.execute(_THERE).fetchone() or (False,))[0]:
        return
    with session.transaction():
        for statement in _MAKE:
            session.execute(statement.encode())
