"""One client of a replay: sessions with shards, merged answers, and the servers' costs.

A query goes to the shards that the placement names and to no other, to all of them at once: each is sent its query
before any answer is read. That needs libpq's own calls, below psycopg's cursors. A query of a known shape is
prepared once in each session. If a shard is away, its part of the answer is missing: the query counts as partial,
and the others go on.

CPU is read from /proc if the server runs on this machine and its processes are visible. Otherwise it is unknown;
then the server itself reports how long its sessions were busy, an upper bound (PostgreSQL 14 and newer).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from levada.core.hashing import content_digest
from levada.replay.questions import TABLE, Question, stored
from levada.sharding.placement import Placement

if TYPE_CHECKING:
    import psycopg


_PROC = Path("/proc")
_COUNTS_BUSY = 140_000
_USER_TIME, _SYSTEM_TIME = 11, 12  # positions after the name in /proc/PID/stat


def backend_pid(connection: psycopg.Connection[Any]) -> int | None:
    """The process that serves this connection, if it is on this machine."""
    pid = connection.info.backend_pid
    if not _is_here(connection.info.host, connection.info.hostaddr):
        return None
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    return pid if words.startswith(b"postgres") else None


def cpu_seconds(pids: Sequence[int | None]) -> float | None:
    """The CPU of all of them since they began; None if one is not visible."""
    return over(sum, [None if pid is None else _on_cpu(pid) for pid in pids])


def over(compute: Callable[[list[float]], float], values: Sequence[float | None]) -> float | None:
    """None if one of the values is unknown."""
    known = [each for each in values if each is not None]
    return compute(known) if known and len(known) == len(values) else None


def memory_bytes(pids: Sequence[int | None]) -> int | None:
    """Their private memory, and the largest shared memory that one of them has touched."""
    facts = [_status(pid) for pid in pids if pid is not None]
    if not facts or len(facts) < len(pids) or not all(facts):
        return None
    return sum(each["RssAnon"] for each in facts) + max(each["RssShmem"] for each in facts)


def busy_seconds(connection: psycopg.Connection[Any]) -> float | None:
    """How long statements ran in this database, in all sessions, since the server's statistics began."""
    if connection.info.server_version < _COUNTS_BUSY:
        return None
    sql = "SELECT active_time / 1000 FROM pg_stat_database WHERE datname = current_database()"
    row = connection.execute(sql).fetchone()
    return float(row[0]) if row else None


def _is_here(host: str, address: str) -> bool:
    if host.startswith(("/", "@")) or not (host or address):
        return True
    try:
        return ip_address(address or host).is_loopback
    except ValueError:
        return host == "localhost"


def _on_cpu(pid: int) -> float | None:
    """From the scheduler, in nanoseconds; without its statistics, in ticks."""
    try:
        return int((_PROC / str(pid) / "schedstat").read_bytes().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return _ticks(pid)


def _ticks(pid: int) -> float | None:
    try:
        after_name = (_PROC / str(pid) / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
        ticks = int(after_name[_USER_TIME]) + int(after_name[_SYSTEM_TIME])
    except (OSError, ValueError, IndexError):
        return None
    return ticks / os.sysconf("SC_CLK_TCK")


def _status(pid: int) -> dict[str, int]:
    """Memory in bytes; empty if the process is not visible."""
    try:
        lines = (_PROC / str(pid) / "status").read_text("ascii", "replace").splitlines()
        status = dict(line.split(":", 1) for line in lines if ":" in line)
        return {name: int(status[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem")}
    except (OSError, KeyError):
        return {}


Rows = list[tuple[bytes, ...]]


def gathered(question: Question, answers: Sequence[Rows]) -> tuple[int, ...]:
    """The ids of the documents in their order, no more than wanted; or their number."""
    if question.counts:
        return (sum(_number(rows[0][0]) for rows in answers if rows),)
    if len(answers) == 1:
        return tuple([_number(row[0]) for row in answers[0]])
    rows = [row for each in answers for row in each]
    rows.sort(reverse=True)  # by number: the newest first among equals
    for place in range(len(question.descending), 0, -1):
        rows.sort(key=lambda row, at=place: row[at], reverse=question.descending[place - 1])  # type: ignore[misc]
    return tuple([_number(row[0]) for row in rows[: question.limit]])


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


_BYTES_OID = 17
_MOST_PREPARED = 500
_STATEMENT_SECONDS = 60


class LineFailed(Exception):
    """A query failed. If `away`, this session answers nothing more."""

    def __init__(self, words: str, *, away: bool) -> None:
        super().__init__(words)
        self.away = away


class ShardLine:
    """A session with one shard."""

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
        """Send a query. Its answer must be read before the next one is sent."""
        import psycopg

        formats, types = [1] * len(parameters), [_BYTES_OID] * len(parameters)
        try:
            name = self._prepared.get(sql) or self._prepare(sql, types)
            if name:
                self._line.send_query_prepared(name, parameters, formats, 1)
            else:
                self._line.send_query_params(self._sql(sql), parameters, types, formats, 1)
        except psycopg.Error as error:
            raise self._failure(str(error)) from None

    def rows(self, columns: int) -> list[tuple[bytes, ...]]:
        """The first `columns` columns of each row; the others are sent too, and ignored."""
        import psycopg

        try:
            result = self._line.get_result()
            while self._line.get_result() is not None:
                pass
        except psycopg.Error as error:
            raise self._failure(str(error)) from None
        if result is None or result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            raise self._failure(result.error_message.decode("utf-8", "replace") if result is not None else "")
        value, places = result.get_value, range(columns)
        found = [tuple([value(row, place) or b"" for place in places]) for row in range(result.ntuples)]
        result.clear()
        return found

    def report(self) -> None:
        """Make the server count this session's work now; older ones do it when they like."""
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
        result = self._line.prepare(name, self._sql(sql), types)
        if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
            raise self._failure(result.error_message.decode("utf-8", "replace"))
        self._prepared[sql] = name
        return name

    def _sql(self, sql: str) -> bytes:
        return sql.replace(TABLE, self.table).encode()

    def _failure(self, words: str) -> LineFailed:
        import psycopg

        first = next((each.strip() for each in words.splitlines() if each.strip()), "no answer")
        return LineFailed(first, away=self._line.status != psycopg.pq.ConnStatus.OK)


_DIRECTORY = f"SELECT shard FROM {TABLE} WHERE id = $1"  # noqa: S608
_ALL = (1 << 64) - 1


class Tally(msgspec.Struct):
    """Counts of a round. `touches`: answers of each shard; `answers`: a sum over what was found, equal if the same
    was found."""

    touches: list[int]
    queries: int = 0
    found: int = 0
    answers: int = 0
    lookups: int = 0  # in the directory
    partial: int = 0  # queries that some shard did not answer
    troubles: dict[str, int] = msgspec.field(default_factory=dict)

    def merge(self, other: Tally) -> None:
        self.touches = list(map(add, self.touches, other.touches))
        self.queries += other.queries
        self.found += other.found
        self.answers = (self.answers + other.answers) & _ALL
        self.lookups += other.lookups
        self.partial += other.partial
        for words, times in other.troubles.items():
            self.troubles[words] = self.troubles.get(words, 0) + times


class Client:
    """`lines`: a session with each shard, None if it is away; `directories`: with each server's part of it."""

    def __init__(
        self, placement: Placement, lines: Sequence[ShardLine | None], directories: Sequence[ShardLine | None] = ()
    ) -> None:
        self._placement = placement
        self._lines = {shard: line for shard, line in enumerate(lines) if line is not None}
        self._servers = len(directories)
        self._directories = {server: line for server, line in enumerate(directories) if line is not None}
        self._locate: Callable[[Any], int | None] | None = self._look_up if placement.directory else None
        self.tally = Tally([0] * placement.shards)

    @property
    def sessions(self) -> list[ShardLine]:
        return [*self._lines.values(), *self._directories.values()]

    def pid_of(self, shard: int) -> int | None:
        return self._lines[shard].pid if shard in self._lines else None

    def begin(self) -> None:
        """Begin a new round: forget earlier counts."""
        self.tally = Tally([0] * self._placement.shards)

    def ask(self, place: int, question: Question) -> None:
        """Run a query; `place` is its position in the replayed log."""
        shards = self._shards(question)
        sent = [shard for shard in shards if self._sent(shard, question)]
        columns = 1 + len(question.descending)  # the number, or a count, and the columns of the order
        answers = []
        for shard in sent:
            try:
                answers.append(self._lines[shard].rows(columns))
                self.tally.touches[shard] += 1
            except LineFailed as failure:
                self._failed(shard, failure)
        self._count(place, gathered(question, answers), whole=len(answers) == len(shards))

    def _shards(self, question: Question) -> Sequence[int]:
        if self._placement.shards == 1:
            return (0,)
        try:
            return sorted(self._placement.shards_for(question.filter, self._locate))
        except LineFailed:  # without the directory any shard may have it
            return sorted(self._placement.shards_for(question.filter))

    def _sent(self, shard: int, question: Question) -> bool:
        if shard not in self._lines:
            return False
        try:
            self._lines[shard].send(question.sql, question.parameters)
        except LineFailed as failure:
            self._failed(shard, failure)
            return False
        return True

    def _failed(self, shard: int, failure: LineFailed) -> None:
        words = f"shard {shard}: {failure}"
        self.tally.troubles[words] = self.tally.troubles.get(words, 0) + 1
        if failure.away:
            self._lines.pop(shard).close()

    def _count(self, place: int, found: tuple[int, ...], *, whole: bool) -> None:
        self.tally.queries += 1
        self.tally.found += len(found)
        self.tally.answers = (self.tally.answers + hash((place, found))) & _ALL
        self.tally.partial += not whole

    def _look_up(self, value: Any) -> int | None:
        wanted = stored(value)
        home = directory_home(wanted, self._servers)
        line = self._directories.get(home)
        if line is None:
            raise LineFailed("the directory is away", away=True)
        self.tally.lookups += 1
        try:
            line.send(_DIRECTORY, (wanted,))
            rows = line.rows(1)
        except LineFailed as failure:
            if failure.away:
                self._directories.pop(home).close()
            raise
        return int.from_bytes(rows[0][0], "big") if rows else None


def directory_home(stored_id: bytes, servers: int) -> int:
    """The server whose directory has this id."""
    return int.from_bytes(content_digest(stored_id)[:8], "big") % servers
