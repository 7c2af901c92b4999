"""Connecting to a PostgreSQL server: address, session settings, and errors translated for the store."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from levada.core.errors import MissingExtra, SettingsError, StoreAway, StoreDamaged, StoreError, StoreLocked
from levada.store.base import StoreLimits
from levada.store.sql.base import no_space

if TYPE_CHECKING:
    import psycopg

    from levada.store.postgresql.session import Session

# Give up on a server that does not answer, unless the address says otherwise.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 2,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
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
    "idle_in_transaction_session_timeout": "5s",  # frees the locks of a machine that vanished
}
_LONGEST_NAME = 63
_PATIENT = StoreLimits()

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DISK_FULL = "53100"
_NO_CONNECTION_LEFT = "53300"
_IDLE_TOO_LONG = "25P03"
_WAITED = {"55P03", "40P01", "40001"}  # lock timeout, deadlock, serialization failure
_TOO_LONG = "57014"  # statement timeout
_DAMAGED = {"XX001", "XX002"}
_OTHER_TABLES = {"42P01", "42703", "3F000"}  # no such table, column or schema
_READ_ONLY = "25006"
_FAILED_BEFORE = "25P02"  # an earlier statement of the transaction failed
_NOT_ALLOWED = "42501"
_GRACE = 1.1  # a server that runs ends a statement before the client gives up


class Address:
    """Where a store is. What is shown of it never holds a password."""

    def __init__(self, dsn: str, schema: str) -> None:
        self.dsn = dsn
        self.schema = _checked(schema)
        self.parts = address_parts(dsn)
        self.place = _place(self.parts, schema)
        self._newest_timeline = 0  # that was seen at these hosts
        self.session_name = f"levada {schema}"[:_LONGEST_NAME]  # by which the server lists who uses the schema

    def connect(self, limits: StoreLimits = _PATIENT, *, read_only: bool = True) -> Session:
        """A session without our settings. Of several hosts, the first that is no standby; for reading, a standby will
        do where there is no other."""
        refused: StoreError | None = None
        standby: Session | None = None
        for parts in self._hosts():
            try:
                session = self._connected(parts, limits)
                if not self._has_choice:
                    return session
                timeline = _timeline(session, self.place)
            except StoreError as error:
                refused = error if refused is None or not isinstance(error, StoreAway) else refused
                continue
            if timeline and timeline < self._newest_timeline:  # a primary that has lost its place without knowing it
                session.close()
                continue
            if timeline:
                self._newest_timeline = timeline
                if standby is not None:
                    standby.close()
                return session
            if standby is None and read_only:
                standby = session
            else:
                session.close()
        if standby is not None:
            return standby
        raise refused or StoreAway(f"{self.place}: all of them are standbys just now, and none can be written to")

    @property
    def _has_choice(self) -> bool:
        """Whether we choose among hosts; not if the address says how."""
        return len(self._hosts_named()) > 1 and "target_session_attrs" not in self.parts

    def _hosts_named(self) -> list[str]:
        return str(self.parts.get("host") or self.parts.get("hostaddr") or "").split(",")

    def _hosts(self) -> Iterator[dict[str, Any]]:
        """The parts of the address with one host each."""
        if not self._has_choice:
            yield self.parts
            return
        lists = {
            name: str(self.parts[name]).split(",") for name in ("host", "hostaddr", "port") if self.parts.get(name)
        }
        for place in range(len(self._hosts_named())):
            own = {name: each[min(place, len(each) - 1)] for name, each in lists.items()}
            yield {**self.parts, **{name: value or None for name, value in own.items()}}

    def _connected(self, parts: Mapping[str, Any], limits: StoreLimits) -> Session:
        import psycopg

        from levada.store.postgresql.session import Session, milliseconds_of

        defaults = {**_DEFAULTS, "application_name": self.session_name, "client_encoding": "utf8"}
        defaults["tcp_user_timeout"] = milliseconds_of(limits.statement_seconds)
        try:
            session = Session.connect(autocommit=True, **{**defaults, **parts})
        except psycopg.Error as error:
            raise _unreachable(error, self.place) from None  # its text may quote the address
        session.patience = limits.statement_seconds * _GRACE
        return session


def _timeline(session: Session, place: str) -> int:
    """The timeline that a primary writes; 0 of a standby."""
    import psycopg

    try:
        (is_standby,) = session.execute("SELECT pg_is_in_recovery()").fetchone() or (False,)
        if is_standby:
            return 0
        try:
            (name,) = session.execute("SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)").fetchone() or ("1",)
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.InsufficientPrivilege):
            return 1  # not every service tells
        return int(name, 16)
    except psycopg.Error as error:
        session.close()
        raise translated(error, place) from None


def connect(address: Address, limits: StoreLimits, *, read_only: bool) -> Session:
    """Open a session with our settings, without looking at the schema yet."""
    import psycopg

    from levada.store.postgresql.values import speak_binary

    session = address.connect(limits, read_only=read_only)
    try:
        speak_binary(session)
        settings = session_settings(address.schema, limits, read_only)
        process, is_standby = session.execute("SELECT pg_backend_pid(), pg_is_in_recovery()").fetchone() or (0, False)
        if process == session.info.backend_pid:
            session.make(settings)
        else:
            # A pool between us and the server: the next transaction may run in another session of the server. It gets
            # all settings itself, and no statement is prepared.
            session.prepare_threshold = None
            session.own_settings = settings
    except psycopg.Error as error:
        session.close()
        raise translated(error, address.place) from error
    if is_standby and not read_only:
        session.close()
        raise StoreAway(f"{address.place} is a standby, which cannot be written to: name the primary, or all hosts")
    return session


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
    if not all(each.isdigit() for each in str(parts.get("port") or "").split(",") if each):
        raise _no_address()
    return parts


def translated(error: psycopg.Error | OSError, place: str) -> StoreError:
    """One sentence that says what happened and what to do. Nothing of the failed batch was written."""
    if isinstance(error, OSError):
        return no_space(place) if error.errno in _FULL else StoreError(f"{place} cannot be used: {error}")
    code, summary = error.sqlstate or "", _summary(error)
    if is_away(error):
        return StoreAway(f"{place} is away ({summary}): start again when the server runs; nothing is lost")
    if code == _FAILED_BEFORE or type(error).__name__ == "PipelineAborted":
        return StoreError(f"{place} undid a write that had failed: nothing of this batch was written")
    if code == _DISK_FULL:
        return no_space(place)
    if code in _WAITED:
        return StoreLocked(f"{place} is held by another process ({summary}): try again")
    if code == _TOO_LONG:
        return StoreAway(f"{place} is too slow ({summary}): see what else it does, or raise store.statement_seconds")
    if code in _DAMAGED:
        return StoreDamaged(f"{place} is damaged ({summary}): restore a copy, or crawl again into another schema")
    if code in _OTHER_TABLES:
        return StoreDamaged(
            f"{place} lacks tables that Levada wrote ({summary}): restore a copy, or name another schema"
        )
    if code in {_READ_ONLY, _NOT_ALLOWED}:
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
        return type(error).__name__ in {"OperationalError", "ConnectionTimeout", "Unanswered"}
    return code.startswith(("08", "57P")) or code in {_NO_CONNECTION_LEFT, _IDLE_TOO_LONG}


def _summary(error: psycopg.Error) -> str:
    """The first line; the others may quote what was to be written."""
    message = error.diag.message_primary or str(error)
    return next((line.strip() for line in message.splitlines() if line.strip()), type(error).__name__)


def session_settings(schema: str, limits: StoreLimits, read_only: bool) -> dict[str, str]:
    quoted = schema.replace('"', '""')
    return _SESSION | {
        "search_path": f'"{quoted}", pg_temp',
        "lock_timeout": f"{max(1, round(limits.busy_seconds * 1000))}ms",
        "statement_timeout": f"{max(1, round(limits.statement_seconds * 1000))}ms",
        "default_transaction_read_only": "on" if read_only else "off",
    }


def _checked(schema: str) -> str:
    if not schema or len(schema.encode("utf-8", "replace")) > _LONGEST_NAME or "\0" in schema:
        raise SettingsError(f"a schema's name has 1 to {_LONGEST_NAME} bytes, not {schema[:80]!r}")
    if schema.startswith("pg_") or schema == "information_schema":
        raise SettingsError(f"the schema {schema!r} belongs to PostgreSQL: name another")
    return schema


def _place(parts: Mapping[str, Any], schema: str) -> str:
    hosts = str(parts.get("host") or parts.get("hostaddr") or "localhost").split(",")
    ports = str(parts.get("port") or "").split(",")
    named = [f"{host}:{ports[min(place, len(ports) - 1)] or '5432'}" for place, host in enumerate(hosts)]
    return f"PostgreSQL at {','.join(named)}/{parts.get('dbname') or ''} (schema {schema})"


def _no_address() -> SettingsError:
    return SettingsError(
        "this is no address of a PostgreSQL database: write it like postgresql://user@host:5432/database, "
        "with signs such as @ / : in a password as %40 %2F %3A"
    )
