"""One session with one shard: how is it asked, and its answer read later?

To ask several shards at once, each is sent its question before any answer is read. That needs libpq's own calls,
below psycopg's cursors. A question of a known shape is prepared once in each session.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from levada.adapters.replay.costs import backend_pid
from levada.adapters.replay.questions import TABLE, Question

if TYPE_CHECKING:
    import psycopg

__all__ = ["LineFailed", "ShardLine", "columns_read"]

_BYTES_OID = 17
_MOST_PREPARED = 500
_STATEMENT_SECONDS = 60


class LineFailed(Exception):
    """`away`: nothing more will be answered here; else only this question was not."""

    def __init__(self, words: str, *, away: bool) -> None:
        super().__init__(words)
        self.away = away


class ShardLine:
    def __init__(self, connection: psycopg.Connection[Any], table: str, server: int) -> None:
        connection.execute(f"SET statement_timeout = '{_STATEMENT_SECONDS}s'")
        connection.execute("SET jit = off")
        self.table, self.server = table, server
        self.pid = backend_pid(connection)
        self._connection = connection
        self._line = connection.pgconn
        self._line.nonblocking = 0
        self._prepared: dict[str, bytes] = {}

    def send(self, sql: str, parameters: tuple[bytes, ...]) -> None:
        """The answer must be read before the next question is sent."""
        import psycopg

        formats, types = [1] * len(parameters), [_BYTES_OID] * len(parameters)
        try:
            name = self._prepared.get(sql) or self._prepare(sql, types)
            if name:
                self._line.send_query_prepared(name, parameters, formats, 1)
            else:
                self._line.send_query_params(self._worded(sql), parameters, types, formats, 1)
        except psycopg.Error as error:
            raise LineFailed(_first_line(str(error)), away=self._is_away()) from None

    def rows(self, columns: int) -> list[tuple[bytes, ...]]:
        """The first so many columns of each row; the others were sent too, and are not looked at."""
        import psycopg

        try:
            result = self._line.get_result()
            while self._line.get_result() is not None:
                pass
        except psycopg.Error as error:
            raise LineFailed(_first_line(str(error)), away=self._is_away()) from None
        if result is None or result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            words = result.error_message.decode("utf-8", "replace") if result is not None else "no answer"
            raise LineFailed(_first_line(words), away=self._is_away())
        value, places = result.get_value, range(columns)
        found = [tuple([value(row, place) or b"" for place in places]) for row in range(result.ntuples)]
        result.clear()
        return found

    def report(self) -> None:
        """Have the server count at once what this session did; older ones do so when they like."""
        with suppress(LineFailed):
            self.send("SELECT pg_stat_force_next_flush()", ())
            self.rows(1)

    def close(self) -> None:
        self._connection.close()

    def _prepare(self, sql: str, types: list[int]) -> bytes:
        import psycopg

        if len(self._prepared) >= _MOST_PREPARED:
            return b""
        name = b"q%d" % len(self._prepared)
        result = self._line.prepare(name, self._worded(sql), types)
        if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
            words = result.error_message.decode("utf-8", "replace")
            raise LineFailed(_first_line(words), away=self._is_away())
        self._prepared[sql] = name
        return name

    def _worded(self, sql: str) -> bytes:
        return sql.replace(TABLE, self.table).encode()

    def _is_away(self) -> bool:
        import psycopg

        return self._line.status != psycopg.pq.ConnStatus.OK


def columns_read(question: Question) -> int:
    """A count, or the number and what the order is by."""
    return 1 if question.counts else 1 + len(question.descending)


def _first_line(words: str) -> str:
    return next((each.strip() for each in words.splitlines() if each.strip()), "no answer")
