"""How does a new SQLite file get its write-ahead log while others open it too?"""

from __future__ import annotations

import sqlite3
import time

__all__ = ["write_ahead"]

_LOOK_AGAIN = 0.005  # seconds


def write_ahead(connection: sqlite3.Connection, seconds: float) -> None:
    """Waits for others by itself: SQLite does not, where they are writing the first page of the same file."""
    until = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(_LOOK_AGAIN)
        else:
            return
