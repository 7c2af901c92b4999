"""The embedded store: one SQLite database on one machine."""

from __future__ import annotations

from levada.store.sqlite.store import SqliteStore, open_summaries

__all__ = ["SqliteStore", "open_summaries"]
