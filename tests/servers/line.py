"""A line to PostgreSQL that counts round trips, takes its time, or falls silent without a word."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["Line", "line_to"]

_ASKS = {b"S"[0], b"H"[0], b"Q"[0]}  # Sync, Flush, Query: the messages after which a client waits
_LOOK = 0.02


class _Counter:
    """Reads what a client says, and counts the messages that ask for an answer."""

    def __init__(self) -> None:
        self.asked = 0
        self._rest = b""
        self._is_started = self._has_asked = False

    def feed(self, data: bytes) -> None:
        self._rest += data
        while True:
            head = 1 if self._is_started else 0
            if len(self._rest) < head + 4:
                return
            length = int.from_bytes(self._rest[head : head + 4], "big")
            if len(self._rest) < head + length:
                return
            if self._is_started:
                asks = self._rest[0] in _ASKS
                self.asked += asks and not self._has_asked  # two in a row are one question
                self._has_asked = asks
            else:  # a request for TLS or GSS is followed by the real start
                self._is_started = length > 8
            self._rest = self._rest[head + length :]


class Line:
    """`asked` counts round trips; `delay` is the time of one direction, in seconds; while `is_silent`, nothing
    arrives, and nobody is told."""

    def __init__(self, port: int) -> None:
        self._far = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.delay = 0.0
        self.is_silent = False
        self._counters: list[_Counter] = []
        self._ended = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def asked(self) -> int:
        return sum(each.asked for each in self._counters)

    def end(self) -> None:
        self._ended = True
        self._listening.close()
        for each in self._threads:
            each.join(10.0)

    def _accept(self) -> None:
        self._listening.settimeout(_LOOK)
        while not self._ended:
            try:
                near, _ = self._listening.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            carrying = threading.Thread(target=self._carry, args=(near,), daemon=True)
            self._threads.append(carrying)
            carrying.start()

    def _carry(self, near: socket.socket) -> None:
        counter = _Counter()
        self._counters.append(counter)
        under_way: deque[tuple[float, socket.socket, bytes]] = deque()
        with near, suppress(OSError), socket.create_connection(("127.0.0.1", self._far)) as far:
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with selectors.DefaultSelector() as selector:
                selector.register(near, selectors.EVENT_READ, far)
                selector.register(far, selectors.EVENT_READ, near)
                while not self._ended:
                    if self.is_silent:
                        time.sleep(_LOOK)
                        continue
                    wait = min(_LOOK, max(0.0, under_way[0][0] - time.monotonic())) if under_way else _LOOK
                    for key, _ in selector.select(wait):
                        data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                        if not data:
                            return
                        if key.fileobj is near:
                            counter.feed(data)
                        under_way.append((time.monotonic() + self.delay, key.data, data))
                    while under_way and under_way[0][0] <= time.monotonic():
                        _, to, data = under_way.popleft()
                        to.sendall(data)


@contextmanager
def line_to(port: int) -> Iterator[Line]:
    line = Line(port)
    try:
        yield line
    finally:
        line.end()
