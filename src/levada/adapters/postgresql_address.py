"""What does the address of a PostgreSQL say? Read before anybody dials: what libpq says of a bad one quotes it."""

from __future__ import annotations

from typing import Any

from levada.errors import MissingExtra, SettingsError

__all__ = ["address_parts"]


def address_parts(dsn: str) -> dict[str, Any]:
    """Host, port, database and the rest, by libpq's names."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise MissingExtra("psycopg", "postgresql") from None
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:  # its text may quote the password
        raise _no_address() from None
    # Where a password holds an @ or a / as it is, a part of it is taken for the host, the port or the database.
    if any("@" in str(parts.get(name, "")) for name in ("host", "port", "dbname")):
        raise _no_address()
    if not str(parts.get("port") or "0").replace(",", "").isdigit():
        raise _no_address()
    return parts


def _no_address() -> SettingsError:
    return SettingsError(
        "this is no address of a PostgreSQL database: write it like postgresql://user@host:5432/database, "
        "with signs such as @ / : in a password as %40 %2F %3A"
    )
