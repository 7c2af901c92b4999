"""Schemas on PostgreSQL for tests of stores, reused when they are given back.

To empty one takes a twentieth of the time that it takes to make one.
"""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import psycopg
from psycopg import sql

from levada.core.protocols import Faults
from levada.store.base import StoreLimits
from levada.store.postgresql import PostgresqlStore
from levada.store.rules import first_site, first_token

__all__ = ["Schemas"]

_NUMBERS = count()  # of one process: others of a parallel run use the same server
_TABLES = """SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relkind = 'r' AND c.relname NOT IN ('levada_store', 'epochs')"""


class Schemas:
    def __init__(self, address: str) -> None:
        self.address = address
        self._admin: psycopg.Connection[Any] = psycopg.connect(address, autocommit=True)
        self._free: list[str] = []

    def lend(self, limits: StoreLimits | None = None) -> str:
        """The name of a schema with an empty store, or none yet."""
        if not self._free:
            return f"schema {os.getpid()} {next(_NUMBERS)}"
        name = self._free.pop()
        self._empty(name, limits.shard if limits else 0)
        return name

    def open(self, limits: StoreLimits | None = None, faults: Faults | None = None) -> PostgresqlStore:
        return PostgresqlStore(self.address, schema=self.lend(limits), limits=limits, faults=faults)

    def take_back(self, *names: str) -> None:
        """What was done to it must have left its tables as they were."""
        self._free.extend(names)

    def close(self) -> None:
        self._admin.close()

    def _empty(self, schema: str, shard: int) -> None:
        tables = [name for (name,) in self._admin.execute(_TABLES, (schema,))]
        emptied = [sql.SQL("DELETE FROM {}").format(sql.Identifier(schema, name)) for name in tables]
        for sequence, first in (("site_numbers", first_site(shard)), ("tokens", first_token(shard))):
            name = sql.Identifier(schema, sequence)
            emptied.append(sql.SQL("ALTER SEQUENCE {} RESTART {}").format(name, first + 1))
        self._admin.execute(sql.SQL(";").join(emptied))
