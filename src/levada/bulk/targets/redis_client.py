"""Redis connections, to one server or a cluster.

redis-py connects, authenticates and finds the nodes; hiredis packs single commands and reads the answers. Bulk
commands are sent as the bytes that `packed` has made, over redis-py's connection. Measured against RESP written by
hand, in CPU: a lookup of one key costs 0.9 times as much, of 100 keys 0.3 times, writing 16 MSETs of 1,000 entries
0.9 times. redis-py's own pipeline costs 3.4, 0.7 and 25 times as much.

A cluster gives each key one of 16,384 slots and each slot to a master. `MOVED` says that a slot lives elsewhere
now: the map of slots is read again and the command repeated. `ASK` says that this key is moving: the command is
repeated there, once. Source: the Redis Cluster specification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import hiredis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.connection import ConnectionPool
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    InvalidResponse,
    MovedError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeout
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from levada.bulk.protocols import Away
from levada.core.errors import LevadaError, StoreFull, UsageError

Answer = Any  # bytes, an integer, None, a `ResponseError`, or a list of these
CLUSTER_BUCKETS = 512  # enough to spread evenly over many masters, few enough for commands of many keys
_TRIES = 40
_SENTINEL_PORT = 26_379
_PATIENCE = 30.0
_OPTIONS: dict[str, Any] = {
    "socket_timeout": _PATIENCE,
    "socket_connect_timeout": _PATIENCE,
    "protocol": 2,
    "driver_info": None,  # redis-py would look up its own version for it: 4 ms for each connection
}


def command(*words: bytes | str | int) -> bytes:
    """One command, as bytes to send."""
    return cast(bytes, hiredis.pack_command(cast(Any, words)))


class RedisLine:
    """One connection, opened when it is first used and again when the server has closed it."""

    def __init__(self, pool: ConnectionPool, address: str) -> None:
        self.address = address
        self._pool = pool  # Sentinel's connections refer to it weakly
        try:
            self._connection = cast(Any, pool.make_connection())
        except TypeError as error:  # the URL has an option that redis-py does not know
            raise UsageError(f"the address of Redis at {address} has an unknown option") from error

    @classmethod
    def at(cls, url: str) -> RedisLine:
        try:
            parts = urlsplit(url)
            path = parts.path.strip("/")
            if parts.scheme.endswith("+sentinel"):
                return cls(_sentinel_pool(parts, path), f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/{path}")
            place = f"{parts.scheme}://{parts.hostname or 'localhost'}:{parts.port or 6379}/{int(path or 0)}"
            return cls(ConnectionPool.from_url(url, **_OPTIONS), place)
        except ValueError as error:
            raise UsageError("this is not the address of a Redis, such as redis://localhost:6379/0") from error

    def ask(self, *words: bytes | str | int) -> Answer:
        """Send one command and return its answer; raise an error."""
        answer = self.exchange(command(*words), 1)[0]
        if isinstance(answer, ResponseError):
            raise self.translated(answer)
        return answer

    def run_id(self) -> str:
        """The id of the server's run; behind Sentinel, of the master that it names now."""
        if isinstance(self._pool, SentinelConnectionPool):
            self.close()  # a replaced master keeps its connections for some seconds
        found = self.info("server").get("run_id")
        if found is None:
            raise LevadaError("this Redis does not report its run id")
        return found

    def info(self, section: str) -> dict[str, str]:
        text = bytes(self.ask("INFO", section)).decode(errors="replace")
        pairs = (line.partition(":") for line in text.splitlines())
        return {name: value for name, found, value in pairs if found}

    def scanned(self, pattern: bytes, count: int) -> Iterator[list[bytes]]:
        """The keys of this server, in batches; a key may come twice."""
        cursor = b"0"
        while True:
            cursor, found = self.ask("SCAN", cursor, "MATCH", pattern, "COUNT", count)
            yield found
            if cursor == b"0":
                return

    def exchange(self, data: bytes | Sequence[bytes], answers: int, *, same: bool = False) -> list[Answer]:
        """Send commands and read as many answers; errors are among them. `same` refuses to reconnect: the state of
        the old connection, a WATCH, would be lost."""
        line = self._connection
        try:
            if self._is_cut():
                if same:
                    raise RedisConnectionError("it hung up")
                line.connect()
            line.send_packed_command((data if isinstance(data, bytes) else b"".join(data),), check_health=False)
            return [self._answer() for _ in range(answers)]
        except AuthenticationError as error:
            self.close()
            raise LevadaError(f"Redis at {self.address} refused: {error}") from error
        except (RedisConnectionError, RedisTimeout, InvalidResponse, OSError) as error:
            self.close()
            raise Away(f"Redis at {self.address} cannot be reached: {error}") from error

    def translated(self, error: ResponseError) -> LevadaError:
        if isinstance(error, OutOfMemoryError):
            return StoreFull(f"Redis at {self.address} is full (maxmemory): give it more room, then levada load resume")
        if isinstance(error, (ClusterDownError, TryAgainError, ReadOnlyError)):
            return Away(f"Redis at {self.address} is not ready: {error}")
        return LevadaError(f"Redis at {self.address} refused: {error}")

    def close(self) -> None:
        self._connection.disconnect()

    def _is_cut(self) -> bool:
        """Whether the connection was never made or is no longer open. The server sends only answers, so anything to
        read on an idle connection is its end."""
        line = self._connection
        if not line.is_connected:
            return True
        try:
            cut = bool(line.can_read())
        except RedisConnectionError:
            cut = True
        if cut:
            self.close()
        return cut

    def _answer(self) -> Answer:
        try:
            return self._connection.read_response(disconnect_on_error=False)
        except ResponseError as error:
            return error


def _sentinel_pool(parts: SplitResult, path: str) -> ConnectionPool:
    """`redis+sentinel://[user:password@]host[:port],host[:port]/service[/database]`."""
    who, _, hosts = parts.netloc.rpartition("@")
    user, _, password = who.partition(":")
    service, _, database = path.partition("/")
    places = [host.partition(":") for host in hosts.split(",") if host]
    if not service or not places:
        raise ValueError("no service, or no Sentinel")
    options: dict[str, Any] = {**_OPTIONS, **dict(parse_qsl(parts.query)), "retry": Retry(NoBackoff(), 0)}
    sentinel = cast(Any, Sentinel)(
        [(host, int(port or _SENTINEL_PORT)) for host, _, port in places], sentinel_kwargs=options
    )
    options |= {"username": unquote(user) or None, "password": unquote(password) or None}
    options |= {"db": int(database or 0), "ssl": parts.scheme.startswith("rediss")}
    return cast(ConnectionPool, sentinel.master_for(service, **options).connection_pool)


class RedisNodes:
    """One server, or all masters of a cluster."""

    def __init__(self, url: str, wait: Callable[[float], object]) -> None:
        self._first = RedisLine.at(url)
        self._wait = wait
        self._lines: dict[tuple[str, int], RedisLine] = {}
        self._slots: list[RedisLine] = []
        self.clustered = self._first.info("cluster").get("cluster_enabled") == "1"
        if self.clustered:
            self._cluster = cast(Any, self._reached(lambda: RedisCluster.from_url(url, **_OPTIONS)))
            self._read_slots()

    @property
    def buckets(self) -> int:
        return CLUSTER_BUCKETS if self.clustered else 1

    def masters(self) -> list[RedisLine]:
        return list(dict.fromkeys(self._slots)) if self.clustered else [self._first]

    def line_of(self, key: bytes) -> RedisLine:
        return self._slots[key_slot(key)] if self.clustered else self._first

    def ask(self, key: bytes, *words: bytes | str | int) -> Answer:
        """Send one command about one key to its node; raise an error."""
        answer = self.ask_all([(key, command(*words))])[0]
        if isinstance(answer, ResponseError):
            raise self._first.translated(answer)
        return answer

    def ask_all(self, commands: list[tuple[bytes, bytes]]) -> list[Answer]:
        """Send commands, each about one key or one slot, in one round trip per master; errors are among the
        answers."""
        answers: list[Answer] = [None] * len(commands)
        left = list(range(len(commands)))
        for tried in range(_TRIES):
            left = self._turn(commands, left, answers)
            if not left:
                return answers
            self._wait(min(0.5, 0.01 * 2**tried))
            if self.clustered:
                self._reached(self._cluster.nodes_manager.initialize)
                self._read_slots()
        raise Away(f"Redis at {self._first.address}: slots of the cluster have been moving for too long")

    def close(self) -> None:
        for line in (self._first, *self._lines.values()):
            line.close()
        if self.clustered:
            self._cluster.close()

    def _turn(self, commands: list[tuple[bytes, bytes]], left: list[int], answers: list[Answer]) -> list[int]:
        """One round; returns the commands to repeat."""
        per_line: dict[RedisLine, list[int]] = {}
        for place in left:
            per_line.setdefault(self.line_of(commands[place][0]), []).append(place)
        again: list[int] = []
        for line, places in per_line.items():
            got = line.exchange([commands[place][1] for place in places], len(places))
            for place, answer in zip(places, got, strict=True):
                answers[place] = self._followed(commands[place][1], answer)
                if isinstance(answers[place], (AskError, TryAgainError, ClusterDownError)):  # MOVED is an AskError
                    again.append(place)
        return again

    def _followed(self, words: bytes, answer: Answer) -> Answer:
        if not isinstance(answer, AskError) or isinstance(answer, MovedError):
            return answer
        node = self._cluster.get_node(answer.host, answer.port)
        return answer if node is None else self._line(node).exchange([command("ASKING"), words], 2)[1]

    def _read_slots(self) -> None:
        """A list gives the node of a key faster than redis-py does."""
        found = self._cluster.nodes_manager.slots_cache
        self._slots = [self._line(found[slot][0]) for slot in range(REDIS_CLUSTER_HASH_SLOTS)]

    def _line(self, node: Any) -> RedisLine:
        at = (node.host, node.port)
        if at not in self._lines:
            pool = node.redis_connection.connection_pool
            self._lines[at] = RedisLine(pool, f"{self._first.address.partition('://')[0]}://{node.name}/0")
        return self._lines[at]

    def _reached(self, work: Callable[[], object]) -> object:
        try:
            return work()
        except (RedisClusterException, RedisConnectionError, RedisTimeout, ResponseError) as error:
            raise Away(f"Redis at {self._first.address}: {error}") from error
