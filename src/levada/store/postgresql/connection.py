"""Connecting to a PostgreSQL server: address, session settings, and errors translated for the store."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from levada.core.errors import MissingExtra, SettingsError, StoreAway, StoreDamaged, StoreError, StoreLocked
from levada.store.base import StoreLimits
from levada.store.sql.base import no_space

if TYPE_CHECKING:
    import psycopg

# Give up on a server that does not answer, unless the address says otherwise.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "tcp_user_timeout": 60_000,
}
# Every query of ours is answered by an index, in its order, up to a limit. The planner sometimes prefers to read
# and sort a whole table: it plans while tables are small, and may keep that plan until it learns of more rows.
_SESSION = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    "idle_in_transaction_session_timeout": "60s",  # frees the locks of a machine that vanished
}
_LONGEST_NAME = 63

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DISK_FULL = "53100"
_NO_CONNECTION_LEFT = "53300"
_IDLE_TOO_LONG = "25P03"
_WAITED = {"55P03", "40P01", "40001", "57014"}  # lock timeout, deadlock, serialization failure, statement timeout
_DAMAGED = {"XX001", "XX002"}
_OTHER_TABLES = {"42P01", "42703", "3F000"}  # no such table, column or schema
_NOT_ALLOWED = {"25006", "42501"}


class Address:
    """Where a store is. What is shown of it never holds a password."""

    def __init__(self, dsn: str, schema: str) -> None:
        self.dsn = dsn
        self.schema = _checked(schema)
        self.parts = address_parts(dsn)
        self.place = _place(self.parts, schema)
        self.session_name = f"levada {schema}"[:_LONGEST_NAME]  # by which the server lists who uses the schema

    def connect(self) -> psycopg.Connection[Any]:
        import psycopg

        defaults = {**_DEFAULTS, "application_name": self.session_name}
        missing = {name: value for name, value in defaults.items() if name not in self.parts}
        try:
            return psycopg.connect(self.dsn, autocommit=True, client_encoding="utf8", **missing)
        except psycopg.Error as error:
            raise _unreachable(error, self.place) from None  # its text may quote the address


def connect(address: Address, limits: StoreLimits, *, read_only: bool) -> psycopg.Connection[Any]:
    """Open a session with our settings, without looking at the schema yet."""
    import psycopg

    from levada.store.postgresql.values import speak_binary

    connection = address.connect()
    try:
        speak_binary(connection)
        _set(connection, _session_settings(address.schema, limits, read_only))
        # A commit is durable when it returns, whatever the server's default; a stricter setting stays.
        connection.execute(
            """SELECT set_config('synchronous_commit', 'on', false)
            WHERE current_setting('synchronous_commit') = 'off'"""
        )
    except psycopg.Error as error:
        connection.close()
        raise translated(error, address.place) from error
    return connection


def address_parts(dsn: str) -> dict[str, Any]:
    """Host, port, database and the rest, by libpq's names. Checked before connecting: libpq's errors quote it."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise MissingExtra("psycopg", "postgresql") from None
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:  # its text may quote the password
        raise _no_address() from None
    # A raw @ or / in a password makes a part of it the host, the port or the database.
    if any("@" in str(parts.get(name, "")) for name in ("host", "port", "dbname")):
        raise _no_address()
    if not str(parts.get("port") or "0").replace(",", "").isdigit():
        raise _no_address()
    return parts


def translated(error: psycopg.Error | OSError, place: str) -> StoreError:
    """One sentence that says what happened and what to do. Nothing of the failed batch was written."""
    if isinstance(error, OSError):
        return no_space(place) if error.errno in _FULL else StoreError(f"{place} cannot be used: {error}")
    code, summary = error.sqlstate or "", _summary(error)
    if is_away(error):
        return StoreAway(f"{place} is away ({summary}): start again when the server runs; nothing is lost")
    if code == _DISK_FULL:
        return no_space(place)
    if code in _WAITED:
        return StoreLocked(f"{place} is held by another process ({summary}): try again")
    if code in _DAMAGED:
        return StoreDamaged(f"{place} is damaged ({summary}): restore a copy, or crawl again into another schema")
    if code in _OTHER_TABLES:
        return StoreDamaged(
            f"{place} lacks tables that Levada wrote ({summary}): restore a copy, or name another schema"
        )
    if code in _NOT_ALLOWED:
        return StoreError(f"{place} does not allow this ({summary}): open it for writing, as a user who may")
    return StoreError(f"{place} cannot be read or written ({summary}, {code or type(error).__name__})")


def _unreachable(error: psycopg.Error, place: str) -> StoreError:
    """The error of a connection that could not be made."""
    said = (
        f"{place} is away or does not let us in ({_summary(error)}): see that it runs, and that user, password and "
        "database are right, then start again; nothing is lost"
    )
    return StoreError(said) if _is_refusal(error) else StoreAway(said)


def _is_refusal(error: psycopg.Error) -> bool:
    """Whether a running server said no: waiting would not help."""
    words = str(error)
    return any(each in words for each in ("authentication failed", "does not exist", "no pg_hba.conf entry"))


def is_away(error: psycopg.Error) -> bool:
    """Whether the connection or the server failed, not the query."""
    code = error.sqlstate
    if code is None:
        return type(error).__name__ in {"OperationalError", "ConnectionTimeout"}
    return code.startswith(("08", "57P")) or code in {_NO_CONNECTION_LEFT, _IDLE_TOO_LONG}


def _summary(error: psycopg.Error) -> str:
    """The first line; the others may quote what was to be written."""
    message = error.diag.message_primary or str(error)
    return next((line.strip() for line in message.splitlines() if line.strip()), type(error).__name__)


def _session_settings(schema: str, limits: StoreLimits, read_only: bool) -> dict[str, str]:
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


def _no_address() -> SettingsError:
    return SettingsError(
        "this is no address of a PostgreSQL database: write it like postgresql://user@host:5432/database, "
        "with signs such as @ / : in a password as %40 %2F %3A"
    )
