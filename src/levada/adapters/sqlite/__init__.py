"""The embedded family: one SQLite database on one machine."""

from __future__ import annotations

from levada.adapters.limits import StoreLimits
from levada.adapters.sqlite.database import WRITE_POINTS
from levada.adapters.sqlite.store import SqliteStore

__all__ = ["WRITE_POINTS", "SqliteStore", "StoreLimits"]
