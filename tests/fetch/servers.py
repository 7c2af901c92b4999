"""Small web servers on loopback that answer as scripted, well or badly."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

__all__ = [
    "Answer",
    "Exchange",
    "WebServer",
    "answer",
    "broken",
    "canary",
    "endless",
    "endless_chunks",
    "trickle",
    "web",
]


class Exchange:
    """One request that arrived, and the way to answer it with any bytes at all."""

    def __init__(self, server: WebServer, connection: socket.socket, head: bytes) -> None:
        self.head = head.decode("latin-1")
        self.path = self.head.split(" ")[1]
        self._server = server
        self._connection = connection

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def header(self, name: str) -> str | None:
        for line in self.head.split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name:
                return value.strip()
        return None

    def hang(self) -> None:
        """Say nothing more until the server ends."""
        self._server.ending.wait(30)

    def pause(self, seconds: float) -> bool:
        """Wait a little; True once the server ends."""
        return self._server.ending.wait(seconds)

    def reset(self) -> None:
        """Break the connection off (RST)."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        raise ConnectionAbortedError


Answer = bytes | Callable[[Exchange], None]


def answer(body: bytes = b"", *headers: str, status: str = "200 OK") -> bytes:
    """A well-formed answer."""
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode("latin-1") + body


def broken(data: bytes) -> Answer:
    return lambda exchange: exchange.send(data)


def endless(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        exchange.send(bytes(16_384))


def endless_chunks(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        exchange.send(b"4000\r\n" + bytes(16_384) + b"\r\n")


def trickle(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while not exchange.pause(0.05):
        exchange.send(b"x")


class WebServer:
    """Answers by path; an answer in bytes keeps the connection open, a function ends it when it returns."""

    def __init__(self, answers: Mapping[str, Answer], tls: ssl.SSLContext | None, host: str) -> None:
        self.arrived = threading.Event()  # a request
        self.ending = threading.Event()
        self.exchanges: list[Exchange] = []
        self.connections = 0
        self._answers = answers
        self._tls = tls
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.port: int = self._listener.getsockname()[1]
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self.url = f"{'https' if tls else 'http'}://{self.address}"
        self._start(self._accept)

    def close(self) -> None:
        self.ending.set()
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        while not self.ending.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            self._start(self._serve, connection)

    def _serve(self, plain: socket.socket) -> None:
        connection = plain
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(plain, server_side=True)
                self._open.add(connection)
            self.talk(connection)
        except (OSError, ValueError):
            pass  # the other side went away, as many of these tests want it to
        finally:
            self._open -= {plain, connection}
            connection.close()
            plain.close()

    def talk(self, connection: socket.socket) -> None:
        pending = b""
        while True:
            head, found, pending = pending.partition(b"\r\n\r\n")
            while not found:
                piece = connection.recv(65536)
                if not piece:
                    return
                head, found, pending = (head + piece).partition(b"\r\n\r\n")
            exchange = Exchange(self, connection, head)
            self.exchanges.append(exchange)
            self.arrived.set()
            reply = self._answers.get(exchange.path, answer(status="404 Not Found"))
            if not isinstance(reply, bytes):
                reply(exchange)
                return
            connection.sendall(reply)


@contextmanager
def web(
    answers: Mapping[str, Answer],
    tls: ssl.SSLContext | None = None,
    *,
    host: str = "127.0.0.1",
    kind: type[WebServer] = WebServer,
) -> Iterator[WebServer]:
    server = kind(answers, tls, host)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def canary() -> Iterator[tuple[int, Callable[[], int]]]:
    """A port open on every address of this machine, and how many connections reached it."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256) as listener:
        listener.setblocking(False)

        def reached() -> int:
            count = 0
            with suppress(BlockingIOError):
                while True:
                    listener.accept()[0].close()
                    count += 1
            return count

        yield listener.getsockname()[1], reached
