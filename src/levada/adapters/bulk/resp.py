"""How does one speak with a Redis? A line of commands out, a line of answers in.

Own, and small: a load writes commands that are already bytes, thousands at a time, and wants only to know whether
they were taken. Source: the Redis serialization protocol, version 2.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from levada.bulk.trouble import Away
from levada.errors import LevadaError, StoreFull, UsageError

__all__ = ["Answer", "RedisAddress", "RedisError", "RedisLine", "command", "redis_address"]

Answer = Any  # bytes, an integer, None, a `RedisError`, or a list of such

_PATIENCE = 30.0
_MOST_BULK = 512 * 1024 * 1024  # Redis itself holds no longer string


class RedisError(LevadaError):
    """What the server answered instead: `MOVED 3999 host:port`, `OOM ...`, `NOAUTH ...`."""


class RedisAddress:
    """Where a server is, and as whom to speak with it."""

    def __init__(self, host: str, port: int, *, user: str, password: str, database: int, secure: bool) -> None:
        self.host, self.port = host, port
        self.user, self.password, self.database, self.secure = user, password, database, secure

    def elsewhere(self, host: str, port: int) -> RedisAddress:
        """Another node of the same cluster."""
        return RedisAddress(
            host or self.host, port, user=self.user, password=self.password, database=0, secure=self.secure
        )

    def __str__(self) -> str:
        return f"{'rediss' if self.secure else 'redis'}://{self.host}:{self.port}/{self.database}"


def redis_address(url: str) -> RedisAddress:
    try:
        parts = urlsplit(url)
        port, database = parts.port or 6379, int(parts.path.strip("/") or 0)
    except ValueError as error:
        raise UsageError("that is no address of a Redis, such as redis://localhost:6379/0") from error
    return RedisAddress(
        parts.hostname or "localhost",
        port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=database,
        secure=parts.scheme.startswith("rediss"),
    )


def command(*words: bytes | str | int) -> bytes:
    """One command, as it goes over the line."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


class RedisLine:
    """A connection; dialled when it is first used."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self._socket: socket.socket | None = None

    def ask(self, *words: bytes | str | int) -> Answer:
        """One command, one answer; an error is raised."""
        answer = self.exchange(command(*words), 1)[0]
        if isinstance(answer, RedisError):
            raise self.translated(answer)
        return answer

    def exchange(self, data: bytes | Sequence[bytes], answers: int) -> list[Answer]:
        """Send commands, read so many answers; errors are among them."""
        try:
            line = self._dialled()
            line.sendall(data if isinstance(data, bytes) else b"".join(data))
            return [self._read() for _ in range(answers)]
        except (OSError, ssl.SSLError) as error:
            self.close()
            raise Away(f"Redis at {self.address} cannot be reached: {error}") from error

    def translated(self, error: RedisError) -> LevadaError:
        said = str(error)
        if said.startswith("OOM"):
            return StoreFull(
                f"Redis at {self.address} is full (maxmemory): give it more room, then levada load resume"
            )
        if said.startswith(("LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "READONLY")):
            return Away(f"Redis at {self.address} is not ready: {said}")
        return LevadaError(f"Redis at {self.address} refused: {said}")

    def close(self) -> None:
        if self._socket is not None:
            self._answers.close()
            self._socket.close()
            self._socket = None

    def _dialled(self) -> socket.socket:
        if self._socket is not None and not self._has_hung_up(self._socket):
            return self._socket
        self.close()
        at = self.address
        line = socket.create_connection((at.host, at.port), timeout=_PATIENCE)
        if at.secure:
            line = ssl.create_default_context().wrap_socket(line, server_hostname=at.host)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket, self._answers = line, line.makefile("rb")
        self._greet()
        return line

    def _has_hung_up(self, line: socket.socket) -> bool:
        """Nobody speaks unasked: what there is to read on an idle line is its end, except under TLS."""
        if self.address.secure:
            return False
        looking = select.poll()
        looking.register(line, select.POLLIN)
        return bool(looking.poll(0))

    def _greet(self) -> None:
        at = self.address
        if at.password:
            self.ask("AUTH", *([at.user] if at.user else []), at.password)
        if at.database:
            self.ask("SELECT", at.database)

    def _read(self) -> Answer:
        line = self._answers.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("it hung up")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            return RedisError(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return self._bulk(int(rest))
        if kind == b"*":
            return [self._read() for _ in range(int(rest))] if int(rest) >= 0 else None
        raise ConnectionError("it does not speak as a Redis does")

    def _bulk(self, length: int) -> bytes | None:
        if length < 0:
            return None
        if length > _MOST_BULK:
            raise ConnectionError("it sends more than a Redis can hold")
        data = self._answers.read(length + 2)
        if len(data) < length + 2:
            raise ConnectionError("it hung up")
        return data[:-2]
