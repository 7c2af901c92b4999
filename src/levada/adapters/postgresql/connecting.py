"""How is a PostgreSQL server reached, and what is asked of each session?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from levada.adapters.limits import StoreLimits
from levada.adapters.postgresql.failures import translated, unreachable
from levada.adapters.postgresql_address import address_parts
from levada.errors import SettingsError

if TYPE_CHECKING:
    import psycopg

__all__ = ["Address", "connect"]

# A server that does not answer at all is given up on, unless the address says otherwise.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "tcp_user_timeout": 60_000,
    "application_name": "levada",
}
# Every question of ours is answered by an index, in its order, up to a limit. The planner would sometimes rather
# read and sort a whole table: it plans while tables are small, and may keep that plan until it learns of more.
_SESSION = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    "idle_in_transaction_session_timeout": "60s",  # of a machine that vanished: what it held is free again then
}
_LONGEST_NAME = 63


class Address:
    """Where a store lies; what is shown of it never holds a password."""

    def __init__(self, dsn: str, schema: str) -> None:
        self.dsn = dsn
        self.schema = _checked(schema)
        self._parts = address_parts(dsn)
        self.place = _place(self._parts, schema)

    def connect(self) -> psycopg.Connection[Any]:
        import psycopg

        missing = {name: value for name, value in _DEFAULTS.items() if name not in self._parts}
        try:
            return psycopg.connect(self.dsn, autocommit=True, client_encoding="utf8", **missing)
        except psycopg.Error as error:
            raise unreachable(error, self.place) from None  # its text may name what the address holds


def connect(address: Address, limits: StoreLimits, *, read_only: bool) -> psycopg.Connection[Any]:
    """A session of our own ways; what is in the schema is not looked at yet."""
    import psycopg

    from levada.adapters.postgresql.values import speak_binary

    connection = address.connect()
    try:
        speak_binary(connection)
        _set(connection, _wishes(address.schema, limits, read_only))
        # Durable when it returns, whatever the server's default; one that asks for more than that stays.
        connection.execute(
            """SELECT set_config('synchronous_commit', 'on', false)
            WHERE current_setting('synchronous_commit') = 'off'"""
        )
    except psycopg.Error as error:
        connection.close()
        raise translated(error, address.place) from error
    return connection


def _wishes(schema: str, limits: StoreLimits, read_only: bool) -> dict[str, str]:
    quoted = schema.replace('"', '""')
    return _SESSION | {
        "search_path": f'"{quoted}", pg_temp',
        "lock_timeout": f"{max(1, round(limits.busy_seconds * 1000))}ms",
        "default_transaction_read_only": "on" if read_only else "off",
    }


def _set(connection: psycopg.Connection[Any], settings: Mapping[str, str]) -> None:
    calls = ", ".join("set_config(%s, %s, false)" for _ in settings)
    connection.execute(f"SELECT {calls}", [each for pair in settings.items() for each in pair])


def _checked(schema: str) -> str:
    if not schema or len(schema.encode("utf-8", "replace")) > _LONGEST_NAME or "\0" in schema:
        raise SettingsError(f"a schema's name has 1 to {_LONGEST_NAME} bytes, not {schema[:80]!r}")
    if schema.startswith("pg_") or schema == "information_schema":
        raise SettingsError(f"the schema {schema!r} belongs to PostgreSQL: name another")
    return schema


def _place(parts: Mapping[str, Any], schema: str) -> str:
    host, port = parts.get("host") or parts.get("hostaddr") or "localhost", parts.get("port") or "5432"
    return f"PostgreSQL at {host}:{port}/{parts.get('dbname') or ''} (schema {schema})"
