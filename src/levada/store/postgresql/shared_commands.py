"""Control commands for all controls of one collection, in the server where machines find it.

Every control executes every command, in their order. Commands go after ten minutes: who starts later finds what they
have left behind in the store and in the desired state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from levada.core.commands import ControlCommand, DesiredState
from levada.core.errors import StoreDamaged
from levada.store.postgresql.shared_plan import SharedSession

if TYPE_CHECKING:
    import psycopg

_TABLES = """CREATE TABLE IF NOT EXISTS levada_shared.commands (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection text COLLATE "C" NOT NULL,
        command bytea NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE TABLE IF NOT EXISTS levada_shared.desired (
        collection text COLLATE "C" PRIMARY KEY, number bigint NOT NULL, state bytea NOT NULL)"""
# One after the other: a number is not seen before those below it.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('levada commands ' || %s, 0))"
_FORGET = "DELETE FROM levada_shared.commands WHERE collection = %s AND at < clock_timestamp() - interval '10 minutes'"
_APPEND = "INSERT INTO levada_shared.commands (collection, command) VALUES (%s, %s)"
_AFTER = "SELECT number, command FROM levada_shared.commands WHERE collection = %s AND number > %s ORDER BY number"
_NEWEST = "SELECT coalesce(max(number), 0) FROM levada_shared.commands"
_STATE = "SELECT state FROM levada_shared.desired WHERE collection = %s"
_SET_STATE = """INSERT INTO levada_shared.desired VALUES (%s, %s, %s) ON CONFLICT (collection)
    DO UPDATE SET number = excluded.number, state = excluded.state WHERE desired.number < excluded.number"""


class PostgresqlCommandLog:
    """The commands of one collection, over a session of its own."""

    def __init__(self, dsn: str, collection: str) -> None:
        self._line = SharedSession(dsn, _TABLES)
        self._collection = collection
        self.close = self._line.close

    def append(self, command: ControlCommand) -> None:
        def add(session: psycopg.Connection[Any]) -> None:
            with session.transaction():
                session.execute(_LOCK, (self._collection,))
                session.execute(_FORGET, (self._collection,))
                session.execute(_APPEND, (self._collection, msgspec.json.encode(command)))

        self._line.run(add)

    def after(self, number: int) -> list[tuple[int, ControlCommand]]:
        rows = self._line.run(lambda session: session.execute(_AFTER, (self._collection, number)).fetchall())
        return [(at, self._readable(body, ControlCommand)) for at, body in rows]

    def newest(self) -> int:
        row = self._line.run(lambda session: session.execute(_NEWEST).fetchone())
        return int(row[0]) if row is not None else 0

    def state(self) -> DesiredState | None:
        """What the commands so far have left behind; None if there never was one."""
        row = self._line.run(lambda session: session.execute(_STATE, (self._collection,)).fetchone())
        return None if row is None else self._readable(row[0], DesiredState)

    def keep_state(self, number: int, state: DesiredState) -> None:
        """Keep what the commands up to this one have left behind, unless that of a later one is kept."""
        body = msgspec.json.encode(state)
        self._line.run(lambda session: session.execute(_SET_STATE, (self._collection, number, body)))

    def _readable(self, body: bytes, kind: Any) -> Any:
        try:
            return msgspec.json.decode(bytes(body), type=kind)
        except msgspec.MsgspecError as error:
            raise StoreDamaged(
                f"{self._line.place} holds a command that cannot be read ({error}): run one version of Levada"
            ) from error
