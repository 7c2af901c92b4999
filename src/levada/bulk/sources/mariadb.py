"""Tables of MariaDB and MySQL, read with a streaming cursor.

The server has no snapshot to share: each instance sees the table as it was when the instance began. Text keys are
split by a hash of their bytes: collations treat different keys as equal, and ranges must not.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import pymysql
import pymysql.cursors

from levada.bulk.protocols import Away
from levada.bulk.sources.rows import SqlSource, kinds_of, marked
from levada.bulk.splitting import TableFacts
from levada.bulk.tasks import LoadPlan
from levada.core.errors import LevadaError, Refused, UsageError

_INTEGERS = {"tinyint", "smallint", "mediumint", "int", "bigint"}
_READ_AS_TEXT = (decimal.Decimal, datetime.date, datetime.timedelta)
_REFUSED = {1044, 1045, 1142, 1143, 1227}  # access denied, in its several forms
_BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


class MariadbSource(SqlSource):
    """A table of MariaDB or MySQL."""

    _quote = "`"

    def __init__(self, url: str, plan: LoadPlan) -> None:
        self._plan = plan
        try:
            parts = urlsplit(url)
            port = parts.port or 3306
        except ValueError:  # its text may quote the password
            raise UsageError("not the address of a MariaDB, such as mariadb://user@host:3306/shop") from None
        self._database = parts.path.strip("/")
        if not self._database:
            raise UsageError("name the database in --from, such as mariadb://user:password@host:3306/shop")
        with self._told():
            self._line = pymysql.connect(
                host=parts.hostname or "localhost",
                port=port,
                user=unquote(parts.username or ""),
                password=unquote(parts.password or ""),
                database=self._database,
                charset="utf8mb4",
                connect_timeout=10,
                read_timeout=600,
                autocommit=True,
            )
        schema, _, table = plan.table.rpartition(".")
        schema = schema or self._database
        known = "SELECT table_name FROM information_schema.tables WHERE table_schema = ?"
        self._find_table([[self._database, plan.table], [schema, table]], known, schema)

    def share(self, offers: Sequence[str], since: str | None) -> str | None:
        list(self._rows(_BEGIN, []))
        return super().share(offers, since)

    def facts(self) -> TableFacts:
        key_kind, value_kind = self._kinds()
        rows = next(self._rows(f"SELECT count(*) FROM {self._table()}", []))[0]  # noqa: S608
        index = f"SHOW INDEX FROM {self._table()} WHERE Seq_in_index = 1 AND Column_name = ?"
        indexed = list(self._rows(index, [self._plan.key]))
        return TableFacts(
            rows, key_kind, value_kind, indexed=bool(indexed), ordered=key_kind == "int", newest=self._newest()
        )

    def close(self) -> None:
        self._line.close()

    def _columns(self, named: Sequence[str]) -> dict[str, str]:
        statement = "SELECT column_name, column_type FROM information_schema.columns"
        rows = self._rows(f"{statement} WHERE table_schema = ? AND table_name = ?", named)
        return {str(row[0]): str(row[1]).lower() for row in rows}

    def _key(self) -> str:
        name = self._quoted(self._plan.key)
        return name if self._kinds()[0] == "int" else f"CAST({name} AS CHAR)"

    def _exact(self) -> str:
        return self._quoted(self._plan.key) if self._kinds()[0] == "int" else f"BINARY {self._key()}"

    def _hashed(self) -> str:
        return f"CRC32(CONVERT({self._key()} USING utf8mb4))"

    def _kinds(self) -> tuple[str, str]:
        return kinds_of(_whole(self._types[self._plan.key]), _whole(self._types[self._plan.value]))

    def _rows(self, statement: str, values: Sequence[Any]) -> Iterator[Any]:
        with self._told(), self._line.cursor(pymysql.cursors.SSCursor) as cursor:
            cursor.execute(marked(statement) if values else statement, values or None)
            for row in cursor:
                yield tuple(str(each) if isinstance(each, _READ_AS_TEXT) else each for each in row)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except pymysql.err.MySQLError as error:
            number, words = (error.args[0], error.args[-1]) if error.args else (0, error)
            if not isinstance(error, pymysql.err.OperationalError | pymysql.err.InterfaceError):
                raise LevadaError(f"{self._plan.table} in {self._plan.source} cannot be read: {words}") from error
            if number in _REFUSED:
                raise Refused(f"{self._plan.table} may not be read: ask for GRANT SELECT on it") from error
            raise Away(f"{self._plan.source} cannot be reached: {words}") from error


def _whole(column: str) -> bool:
    """An unsigned bigint may not fit into 64 signed bits."""
    name = column.partition("(")[0].partition(" ")[0]
    return name in _INTEGERS and not (name == "bigint" and "unsigned" in column)
