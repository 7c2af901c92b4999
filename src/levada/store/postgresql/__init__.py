"""The store for several machines: one schema in one PostgreSQL database (`pip install 'levada[postgresql]'`)."""

from __future__ import annotations

from levada.store.postgresql.store import PostgresqlStore, open_summaries

__all__ = ["PostgresqlStore", "open_summaries"]
