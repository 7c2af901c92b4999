"""The embedded family: one SQLite database on one machine."""

from __future__ import annotations

from levada.adapters.limits import StoreLimits
from levada.adapters.sqlite.store import SqliteStore
from levada.adapters.write_points import WRITE_POINTS

__all__ = ["WRITE_POINTS", "SqliteStore", "StoreLimits"]
