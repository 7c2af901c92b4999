"""The task store in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import psycopg
from psycopg.errors import InsufficientPrivilege, OperationalError

from levada.bulk.protocols import Away
from levada.bulk.task_stores.sql import TABLES, SqlTaskStore
from levada.core.errors import LevadaError, Refused
from levada.store.postgresql.connection import address_parts


class PostgresqlTaskStore(SqlTaskStore):
    """Tasks in tables. Users who may not create tables keep the task store elsewhere."""

    def __init__(self, url: str) -> None:
        address_parts(url)
        self._lock = Lock()
        try:
            self._line = psycopg.connect(url, autocommit=True, application_name="levada load", connect_timeout=10)
            with self._line.transaction():
                # one instance creates the tables
                self._line.execute("SELECT pg_advisory_xact_lock(hashtext('levada_loads'))")
                for table in TABLES:
                    self._line.execute(table)
        except OperationalError as error:
            raise Away(f"the PostgreSQL of the task store cannot be reached: {_first(error)}") from error
        except InsufficientPrivilege as error:
            raise Refused(
                "the task store may not be kept in this PostgreSQL: name another place with --book"
            ) from error
        except psycopg.Error as error:
            raise LevadaError(f"the task store cannot be kept in this PostgreSQL: {_first(error)}") from error

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        with self._lock:
            try:
                with self._line.transaction():
                    self._line.execute("SELECT pg_advisory_xact_lock(hashtext('levada_load:' || %s))", (name,))
                    yield
            except OperationalError as error:
                raise Away(f"the PostgreSQL of the task store cannot be reached: {_first(error)}") from error
            except psycopg.Error as error:
                raise LevadaError(f"the task store in PostgreSQL cannot be used: {_first(error)}") from error

    def close(self) -> None:
        self._line.close()

    def _run(self, statement: str, *values: object) -> list[Any]:
        done = self._line.execute(statement.replace("?", "%s"), values)
        return list(done.fetchall()) if done.description else []

    def _now(self) -> float:
        return float(self._run("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0])


def _first(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
