"""A server that only one run of the tests uses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tests.needs import missing

__all__ = ["Child", "PrivateServer", "free_ports", "wait_for_port"]

_PATIENCE = 30.0
_LOOK_AGAIN = 0.02


class PrivateServer(Protocol):
    """`start` returns the address when the server answers, and raises `OSError` if it does not."""

    @staticmethod
    def installed() -> bool: ...

    def start(self, folder: Path) -> str: ...

    def stop(self) -> None: ...


def free_ports(count: int) -> list[int]:
    """Different ports of the loopback that nobody listens at now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def wait_for_port(port: int, name: str) -> None:
    """Until something listens at this port of the loopback."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            time.sleep(_LOOK_AGAIN)
        else:
            return
    missing(f"{name} does not start")


class Child:
    """A process with its own children, whose words are read and ended all at once."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._said: deque[str] = deque(maxlen=40)
        self._heard = threading.Event()
        self._awaited = ""
        self._found = False
        self._listening: threading.Thread | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_for(self, words: str, seconds: float) -> None:
        """Until it says this; what it says later is read too, so that it never waits for us."""
        self._awaited = words
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()
        self._heard.wait(seconds)
        if not self._found:
            self.end()
            raise OSError(f"it did not say {words!r} within {seconds:g} s:\n{''.join(self._said)}")

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.append(line.decode(errors="replace"))
            if self._awaited in self._said[-1]:
                self._found = True
                self._heard.set()
        self._heard.set()

    def end(self) -> None:
        """Nothing of a private server is worth a gentle stop."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._listening is not None:
            self._listening.join(10.0)
        if self._process.stdout is not None and (self._listening is None or not self._listening.is_alive()):
            self._process.stdout.close()
