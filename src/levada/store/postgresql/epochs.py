"""Epochs: which server has numbered the changes of a schema.

A standby that takes over may lack what its primary committed last. Numbers that were given there are not given again:
before its first write, a writer that finds another server, or another timeline of it, begins an epoch, whose changes
are numbered from far above. Tokens too: a lease of the lost history never fits one of this.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from levada.store.postgresql.session import Session

APART = 1_000_000_000
"""Epochs begin at multiples of this. Between two, at least as many numbers are left out, more than any standby is
behind; a number stays exact in a JSON reader until the nine millionth failover."""

EPOCHS = "SELECT name, after, begins FROM epochs ORDER BY begins"
_TOKENS_APART = 1_000_000
_SERVER = """SELECT (SELECT system_identifier FROM pg_control_system())::text || ':' ||
    left(pg_walfile_name(pg_current_wal_lsn()), 8)"""
_NEWEST = "SELECT name, server FROM epochs ORDER BY begins DESC LIMIT 1"
_STEP = """SELECT greatest((SELECT coalesce(max(seq), 0) FROM documents WHERE seq IS NOT NULL),
    (SELECT coalesce(max(n), 0) FROM counters WHERE name = 'seq'))"""
_SET_STEP = "INSERT INTO counters (name, n) VALUES ('seq', %s) ON CONFLICT (name) DO UPDATE SET n = excluded.n"


def renewed_epoch(session: Session) -> str:
    """The epoch in which this session writes; a new one if the server is not the one that was written to before."""
    import psycopg

    server = ""
    with suppress(psycopg.Error), session.transaction():  # not every service tells
        (server,) = session.execute(_SERVER).fetchone() or ("",)
    newest = session.execute(_NEWEST).fetchone()
    if newest is not None and server in ("", newest[1]):
        return str(newest[0])
    with session.transaction():
        session.execute("LOCK TABLE epochs IN EXCLUSIVE MODE")  # of several writers that connect now, one begins it
        newest = session.execute(_NEWEST).fetchone()
        if newest is not None and newest[1] == server:
            return str(newest[0])
        name = secrets.token_hex(8)
        after = begins = 0
        if newest is not None:
            ((after,),) = session.execute(_STEP).fetchall()
            begins = (after // APART + 2) * APART
            session.execute(_SET_STEP, (begins,))
            session.execute("SELECT setval('tokens', nextval('tokens') + %s)", (_TOKENS_APART,))
        session.execute("INSERT INTO epochs VALUES (%s, %s, %s, %s)", (name, server, after, begins))
    return name
