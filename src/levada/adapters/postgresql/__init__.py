"""The family for several machines: one schema in one PostgreSQL database (`pip install 'levada[postgresql]'`)."""

from __future__ import annotations

from levada.adapters.postgresql.store import PostgresqlStore

__all__ = ["PostgresqlStore"]
